/**
 * Softmax attention of a few new tokens over a cache. Not exported to users: softmaxAttentionStep is its one-token
 * form, and layers use it to read a prompt.
 */
import * as tf from '@tensorflow/tfjs-core';
import {isNonZero} from '../src/conditions';
import {check, show, showShape} from '../src/errors';
import {attend} from '../src/softmax_attention';
import type {KVCache} from './kv_cache';

export interface ChunkOptions {
  /** Default 1/sqrt(r). */
  scale?: number;
  /** [B,T]; keeps where != 0. Masked tokens take a place in the cache that nothing attends to. */
  mask?: tf.Tensor;
}

/**
 * Appends T tokens to the cache and attends causally: token i of the chunk sees the cache and tokens 0..i of the chunk.
 *
 * q and k are [B,H,T,r], v is [B,H,T,d], float32 and T > 0; shapes were checked by the caller.
 */
export function softmaxAttentionChunk(
  q: tf.Tensor4D,
  k: tf.Tensor4D,
  v: tf.Tensor4D,
  cache: KVCache,
  {scale, mask}: ChunkOptions = {},
): {output: tf.Tensor4D; cache: KVCache} {
  const [B, , T, r] = q.shape;
  return tf.tidy(() => {
    const next: KVCache = {
      k: append(cache.k, k),
      v: append(cache.v, v),
      length: cache.length + T,
      maxLength: cache.maxLength,
    };
    if (mask !== undefined || cache.mask !== undefined) {
      const before = cache.mask ?? tf.ones([B, cache.length]);
      const now = mask === undefined ? tf.ones([B, T]) : tf.cast(isNonZero(mask), 'float32');
      next.mask = tf.concat([before, now], 1) as tf.Tensor2D;
    }
    const output = attend(q, next.k, next.v, {
      scale: scale ?? 1 / Math.sqrt(r),
      causal: T > 1, // one token sees everything
      mask: next.mask,
    });
    return {output, cache: next as KVCache & tf.TensorContainerObject};
  });
}

/** Attention of one query per row, [B,H,1,r], over the cache alone; 0 over an empty one. */
export function attendToCache(q: tf.Tensor4D, cache: KVCache, scale?: number): tf.Tensor4D {
  const [B, H, , r] = q.shape;
  if (cache.length === 0) {
    return tf.zeros([B, H, 1, cache.v.shape[3]]);
  }
  return attend(q, cache.k, cache.v, {scale: scale ?? 1 / Math.sqrt(r), causal: false, mask: cache.mask});
}

/** A new cache with the same values; shares the memory. */
export function cloneCache(cache: KVCache): KVCache {
  const {k, v, mask} = cache;
  return {...cache, k: tf.clone(k), v: tf.clone(v), ...(mask && {mask: tf.clone(mask)})};
}

const append = (cached: tf.Tensor4D, added: tf.Tensor4D): tf.Tensor4D =>
  cached.shape[2] === 0 ? tf.clone(added) : tf.concat([cached, added], 2);

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
  const [kShape, vShape] = [
    [B, H, length, r],
    [B, H, length, d],
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
