/** What softmax attention carries from token to token: every key and value so far. */
import * as tf from '@tensorflow/tfjs-core';
import {checkInteger, checkOptions} from '../src/errors';

/**
 * Keys and values of the `length` tokens seen so far. It grows with every token, where a linear attention state stays
 * as it is. A cache is a value: operations return new ones and never change the one they were given. Dispose it with
 * disposeState.
 */
export interface KVCache {
  /** [B,H,length,keyDim] */
  k: tf.Tensor4D;
  /** [B,H,length,valueDim] */
  v: tf.Tensor4D;
  /** [B,length], float32, 0 where a token was masked. Absent until the first masked token. */
  mask?: tf.Tensor2D;
  /** Tokens held, masked ones included. */
  length: number;
  /** Tokens that the cache may hold. */
  maxLength: number;
}

export interface KVCacheSizes {
  batchSize: number;
  numHeads: number;
  maxLength: number;
  keyDim: number;
  valueDim: number;
}

/**
 * An empty cache for softmaxAttentionStep.
 *
 * ```js
 * const cache = kvCache({batchSize: 1, numHeads: 2, maxLength: 128, keyDim: 8, valueDim: 8});
 * disposeState(cache);
 * ```
 *
 * @throws Unless all five sizes are whole numbers of at least 1; on unknown ones.
 */
export function kvCache(sizes: KVCacheSizes): KVCache {
  const fn = 'kvCache';
  const names = ['batchSize', 'numHeads', 'maxLength', 'keyDim', 'valueDim'] as const;
  checkOptions(fn, sizes ?? null, names, 'sizes');
  for (const name of names) {
    checkInteger(fn, name, sizes[name]);
  }
  const {batchSize, numHeads, maxLength, keyDim, valueDim} = sizes;
  return {
    k: tf.zeros([batchSize, numHeads, 0, keyDim]),
    v: tf.zeros([batchSize, numHeads, 0, valueDim]),
    length: 0,
    maxLength,
  };
}
