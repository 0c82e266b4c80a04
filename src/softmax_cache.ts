/**
 * What softmax attention carries from token to token: keys and values of every token so far.
 *
 * Where each new shape costs a shader compilation (webgl, webgpu), the tensors have room for more tokens than they
 * hold, and twice as much whenever it runs out: a step then runs at one of a few shapes. The other backends keep
 * exactly the tokens. A state of one kind can be continued on a backend of the other.
 */
import * as tf from '@tensorflow/tfjs-core';
import {isNonZero} from './conditions';
import {attend} from './softmax_attention';

export interface SoftmaxCache {
  /** [B,H,C,r] and [B,H,C,d], C the capacity; zeros where there is no token or a masked one. */
  k: tf.Tensor4D;
  v: tf.Tensor4D;
  /** [B,C], float32, 1 where a token can be seen. May be absent when C = length and nothing is masked. */
  mask?: tf.Tensor2D;
  /** Tokens held, masked ones included. */
  length: number;
}

const COMPILES_NO_SHAPES = ['cpu', 'wasm', 'tensorflow'];
const LEAST = 64;

/** The capacity for `length` tokens on the current backend. */
export function capacityFor(length: number, backend = tf.getBackend()): number {
  return COMPILES_NO_SHAPES.includes(backend) ? length : Math.max(LEAST, 2 ** Math.ceil(Math.log2(length)));
}

/**
 * Appends T tokens and lets them see the cache and, causally, each other.
 *
 * q and k [B,H,T,r], v [B,H,T,d], mask [B,T]. Returns output [B,H,T,d] and the new cache. Call it inside a tidy.
 */
export function attendToCache(
  q: tf.Tensor4D,
  k: tf.Tensor4D,
  v: tf.Tensor4D,
  cache: SoftmaxCache,
  {scale, mask, capacity}: {scale: number; mask?: tf.Tensor; capacity: number},
): {output: tf.Tensor4D; cache: SoftmaxCache} {
  const [batch, , tokens] = q.shape;
  const length = cache.length + tokens;
  const keep = mask === undefined ? null : isNonZero(tf.reshape(mask, [batch, 1, tokens, 1]));
  const next: SoftmaxCache = {
    k: append(cache.k, select(keep, k), cache.length, capacity),
    v: append(cache.v, select(keep, v), cache.length, capacity),
    length,
  };
  if (mask !== undefined || cache.mask !== undefined || capacity > length) {
    const before = cache.mask ?? tf.ones([batch, cache.length]);
    const now = mask === undefined ? tf.ones([batch, tokens]) : tf.cast(isNonZero(mask), 'float32');
    const rows = (x: tf.Tensor) => tf.reshape(x, [batch, 1, -1, 1]) as tf.Tensor4D;
    next.mask = tf.reshape(append(rows(before), rows(now), cache.length, capacity), [batch, capacity]);
  }
  // One token sees every place that the mask keeps. Several need the last of them to be the last place.
  const seen = tokens === 1 ? next : filled(next, length);
  const output = attend(q, seen.k, seen.v, {scale, causal: tokens > 1, mask: seen.mask});
  return {output, cache: next};
}

/** Attention of one query per row, [B,H,1,r], over the cache alone; 0 over an empty one. Call it inside a tidy. */
export function attendToTokens(q: tf.Tensor4D, cache: SoftmaxCache, scale: number): tf.Tensor4D {
  const [batch, heads] = q.shape;
  if (cache.length === 0) {
    return tf.zeros([batch, heads, 1, cache.v.shape[3]]);
  }
  return attend(q, cache.k, cache.v, {scale, causal: false, mask: cache.mask});
}

/** A new cache of the same values. */
export function cloneCache({k, v, mask, length}: SoftmaxCache): SoftmaxCache {
  return {k: tf.clone(k), v: tf.clone(v), ...(mask && {mask: tf.clone(mask)}), length};
}

/** `added` [B,H,T,.] written at place `at` of `cached` [B,H,C,.], whose capacity becomes `capacity`. */
function append(cached: tf.Tensor4D, added: tf.Tensor4D, at: number, capacity: number): tf.Tensor4D {
  const tokens = added.shape[2];
  const place = (x: tf.Tensor4D, from: number, count: number) =>
    tf.slice(x, [0, 0, from, 0], [-1, -1, count, -1]);
  if (tokens === 1 && cached.shape[2] === capacity && at < capacity) {
    const slot = Uint8Array.from({length: capacity}, (_, i) => (i === at ? 1 : 0));
    return tf.where(tf.tensor(slot, [1, 1, capacity, 1], 'bool'), added, cached);
  }
  const before = at === 0 ? [] : [at === cached.shape[2] ? cached : place(cached, 0, at)];
  // A cache of more room than `capacity` comes from another backend.
  const room = capacity - at - tokens;
  const [batch, heads, , size] = added.shape;
  const after = room === 0 ? [] : [tf.zeros<tf.Rank.R4>([batch, heads, room, size])];
  return tf.concat([...before, added, ...after], 2);
}

/** The cache without its spare room. */
function filled(cache: SoftmaxCache, length: number): SoftmaxCache {
  if (cache.k.shape[2] === length) {
    return cache;
  }
  const {k, v, mask} = cache;
  return {
    k: tf.slice(k, [0, 0, 0, 0], [-1, -1, length, -1]),
    v: tf.slice(v, [0, 0, 0, 0], [-1, -1, length, -1]),
    ...(mask && {mask: tf.slice(mask, [0, 0], [-1, length])}),
    length,
  };
}

const select = (keep: tf.Tensor | null, x: tf.Tensor4D): tf.Tensor4D =>
  keep === null ? x : tf.where(keep, x, 0);
