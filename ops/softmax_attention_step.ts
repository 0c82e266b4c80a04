/** One token of causal softmax attention over a key-value cache. */
import * as tf from '@tensorflow/tfjs-core';
import {toFloat} from '../src/convert';
import {checkNumber, checkOptions} from '../src/errors';
import {attendToCache, attendToTokens, capacityFor, cloneCache} from '../src/softmax_cache';
import {checkShape, checkStepShapes, type Input} from './attention_shapes';
import {checkCache, type KVCache} from './kv_cache';

/** Options of `softmaxAttentionStep`. */
export interface SoftmaxAttentionStepOptions {
  /** Multiplies q.k. Default 1/sqrt(r). */
  scale?: number;
  /** [B]; where it is 0 the token adds nothing to its row. Not differentiated. */
  mask?: Input;
}

const FN = 'softmaxAttentionStep';

/**
 * Attention of one token over itself and all tokens in the cache: the steps of a sequence give what
 * softmaxAttention(q, k, v, {causal: true}) gives. Time is O(length): each step copies the cache and reads it.
 *
 * The cache is a value: the result holds a new one, and the one passed in keeps its value and stays usable. A masked
 * token is invisible to itself and to all later ones; its output is the attention over the tokens before it (0 when
 * there is none).
 *
 * ```js
 * const cache = kvCache({batchSize: 1, numHeads: 2, maxLength: 128, keyDim: 8, valueDim: 8});
 * const x = tf.randomNormal([1, 2, 8], 0, 1, 'float32', 1);
 * const {output, cache: next} = softmaxAttentionStep(x, x, x, cache); // output [1,2,8]
 * disposeState(cache);
 * ```
 *
 * @param q [B,H,r]
 * @param k [B,H,r]
 * @param v [B,H,d]
 * @param cache From kvCache or an earlier step.
 * @returns output [B,H,d] and the new cache, both the caller's.
 * @throws When shapes disagree, when the cache was disposed or already holds maxLength tokens, on unknown options.
 */
export function softmaxAttentionStep(
  q: Input,
  k: Input,
  v: Input,
  cache: KVCache,
  options: SoftmaxAttentionStepOptions = {},
): {output: tf.Tensor3D; cache: KVCache} {
  checkOptions(FN, options, ['scale', 'mask']);
  const {scale, mask} = options;
  if (scale !== undefined) {
    checkNumber(FN, 'scale', scale);
  }
  const {B, H, r, d} = checkStepShapes(FN, q, k, v);
  if (mask !== undefined) {
    checkShape(FN, 'mask', mask, [B], '[B]');
  }
  const nothingNew = mask !== undefined && isAllMasked(mask);
  checkCache(FN, cache, {B, H, r, d}, nothingNew ? 0 : 1);
  const {maxLength} = cache;
  const attendOptions = {scale: scale ?? 1 / Math.sqrt(r)};
  return tf.tidy(() => {
    const query = tf.reshape(toFloat(q), [B, H, 1, r]) as tf.Tensor4D;
    const result = nothingNew
      ? {output: attendToTokens(query, cache, attendOptions.scale), cache: cloneCache(cache)}
      : attendToCache(
          query,
          tf.reshape(toFloat(k), [B, H, 1, r]),
          tf.reshape(toFloat(v), [B, H, 1, d]),
          cache,
          {
            ...attendOptions,
            mask: mask === undefined ? undefined : tf.reshape(toFloat(mask), [B, 1]),
            capacity: Math.min(maxLength, capacityFor(cache.length + 1)),
          },
        );
    return {
      output: tf.reshape(result.output, [B, H, d]) as tf.Tensor3D,
      cache: {...result.cache, maxLength} as Returned,
    };
  });
}

type Returned = KVCache & tf.TensorContainerObject;

/**
 * True when every row is masked: then the cache need not grow. A mask on a GPU is not read back, a masked token then
 * takes a place that nothing attends to.
 */
function isAllMasked(mask: Input): boolean {
  if (!(mask instanceof tf.Tensor)) {
    return Array.from(mask as ArrayLike<number | boolean>).every((keep) => Number(keep) === 0);
  }
  const cheap = ['cpu', 'wasm', 'tensorflow'].includes(tf.getBackend());
  return cheap && Array.from(mask.dataSync()).every((keep) => keep === 0);
}
