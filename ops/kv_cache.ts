/** What softmax attention carries from token to token: every key and value so far. */
import * as tf from '@tensorflow/tfjs-core';
import {check, checkInteger, checkOptions, show, showShape} from '../src/errors';
import type {SoftmaxCache} from '../src/softmax_cache';

/**
 * Keys and values of the `length` tokens seen so far. It grows with every token, where a linear attention state stays
 * as it is. A cache is a value: operations return new ones and never change the one they were given. Dispose it with
 * disposeState.
 */
export interface KVCache extends SoftmaxCache {
  /** Tokens that the cache may hold. */
  maxLength: number;
}

/** Sizes of a cache. */
export interface KVCacheSizes {
  /** B. */
  batchSize: number;
  /** H. */
  numHeads: number;
  /** Tokens that the cache may hold. */
  maxLength: number;
  /** r, of queries and keys. */
  keyDim: number;
  /** d, of values. */
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

/** Refuses what is no cache, a disposed one, one for other sizes, and one with no room for `added` more tokens. */
export function checkCache(
  fn: string,
  cache: unknown,
  {B, H, r, d}: {B: number; H: number; r: number; d: number},
  added: number,
): asserts cache is KVCache {
  const {k, v, mask, length, maxLength} = (cache ?? {}) as Partial<KVCache>;
  check(
    k instanceof tf.Tensor &&
      v instanceof tf.Tensor &&
      typeof length === 'number' &&
      typeof maxLength === 'number',
    fn,
    () => `expected cache to be made by kvCache or an earlier step; got ${show(cache)}.`,
  );
  check(
    !k.isDisposed && !v.isDisposed && !(mask?.isDisposed ?? false),
    fn,
    () => 'expected cache to be live; got a disposed one.',
  );
  const places = Math.max(length, k.shape[2] ?? 0);
  const [kShape, vShape] = [
    [B, H, places, r],
    [B, H, places, d],
  ];
  check(
    tf.util.arraysEqual(k.shape, kShape) && tf.util.arraysEqual(v.shape, vShape),
    fn,
    () =>
      `expected cache.k ${showShape(kShape)} and cache.v ${showShape(vShape)} to go with q, k and v; got cache.k ${showShape(k.shape)}, cache.v ${showShape(v.shape)}.`,
  );
  check(
    length + added <= maxLength,
    fn,
    () =>
      `expected at most maxLength (${maxLength}) tokens in the cache; got ${length} cached and ${added} more. Make the cache with a larger maxLength.`,
  );
}
