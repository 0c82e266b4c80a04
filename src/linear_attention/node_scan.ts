/**
 * Cutting sequences into chunks and summing over chunks, for node_composed.ts: h heads, c chunks of C tokens, so that N
 * tokens of all heads, [...,N,w], are [hc,C,w].
 */
import * as tf from '@tensorflow/tfjs-core';
import {freeing, type Operations, triangle} from '../node/operations';

/** Tokens per chunk of the causal form. */
export const NODE_CHUNK = 64;

/** Up to this many chunks, whose number counts squared there, a product sums them faster than one addition after the other. */
const PRODUCT_CHUNKS = 32;

/** How one call cuts its sequences. */
export interface Plan {
  h: number;
  causal: boolean;
}

/** [...,N,w] to [hc,C,w], filled up with zeros. A reshape: x stays. */
export function toChunks(t: Operations, x: tf.Tensor, {h, causal}: Plan): tf.Tensor {
  const [N, w] = x.shape.slice(-2);
  const C = causal ? Math.min(NODE_CHUNK, N) : N;
  const c = Math.ceil(N / C);
  if (c * C === N) {
    return t.reshape(x, [h * c, C, w]);
  }
  const rows = t.reshape(x, [h, N, w]);
  const padding: [number, number][] = [
    [0, 0],
    [0, c * C - N],
    [0, 0],
  ];
  const full = freeing(tf.pad(rows, padding), rows);
  return freeing(t.reshape(full, [h * c, C, w]), full);
}

/** The inverse, under the given shape [...,N,w]; x is freed. */
export function fromChunks(t: Operations, x: tf.Tensor, {h}: Plan, shape: number[]): tf.Tensor {
  const [rows, C, w] = x.shape;
  const [N] = shape.slice(-2);
  if (rows * C === h * N) {
    return freeing(t.reshape(x, shape), x);
  }
  const whole = freeing(t.reshape(x, [h, (rows / h) * C, w]), x);
  const cut = freeing(tf.slice(whole, [0, 0, 0], [h, N, w]), whole);
  return freeing(t.reshape(cut, shape), cut);
}

/** How to sum over chunks. */
export interface Scan extends Plan {
  /** What is there before the first chunk (after the last, when reversed), [h,a,b]. */
  initial: tf.Tensor | undefined;
  /** Each chunk sees those after it. */
  reverse: boolean;
  /** Whether the total is asked for. */
  total: boolean;
}

export interface Scanned {
  /** What each chunk sees, [hc,a,b]; undefined where there is nothing. */
  seen: tf.Tensor | undefined;
  /** After all chunks, [h,a,b]. When not causal, that is what is seen. */
  total: tf.Tensor | undefined;
}

/**
 * Sums of [hc,a,b], which is freed, from `initial` on: each chunk sees those before it, or those after it when reversed,
 * or all when not causal.
 */
export function scan(t: Operations, local: tf.Tensor, options: Scan): Scanned {
  const {h, causal, initial, reverse} = options;
  const [rows, a, b] = local.shape;
  const c = rows / h;
  if (c === 1) {
    const total = initial === undefined ? local : freeing(t.add(initial, local), local);
    return {seen: causal ? initial : total, total};
  }
  const chunks = freeing(t.reshape(local, [h, c, a * b]), local);
  const start = initial && t.reshape(initial, [h, 1, a * b]);
  const sums =
    (c <= PRODUCT_CHUNKS && byProduct(t, chunks, start, reverse)) || byAdditions(t, chunks, start, reverse);
  const lastOf = (x: tf.Tensor) => tf.slice(x, [0, reverse ? 0 : c - 1, 0], [h, 1, a * b]);
  const total = options.total ? t.reshape(t.add(lastOf(sums), lastOf(chunks)), [h, a, b]) : undefined;
  return freeing({seen: t.reshape(sums, [rows, a, b]), total}, sums, chunks);
}

/** The same for [hc,1,r], where a cumulative sum is cheap. */
export function scanRows(t: Operations, local: tf.Tensor, options: Scan): Scanned {
  const {h, initial, reverse} = options;
  const [rows, , r] = local.shape;
  if (rows === h) {
    return scan(t, local, options);
  }
  const chunks = freeing(t.reshape(local, [h, rows / h, r]), local);
  const from = (sum: tf.Tensor) => (initial === undefined ? sum : t.add(sum, initial));
  return {
    seen: t.reshape(from(t.sumsBefore(chunks, reverse)), [rows, 1, r]),
    total: options.total ? from(t.sum(chunks, 1)) : undefined,
  };
}

/** [h,a,b] to [hc,a,b], each repeated. */
export function perChunk(t: Operations, x: tf.Tensor, c: number): tf.Tensor {
  const [h, a, b] = x.shape;
  return t.reshape(tf.tile(x, [1, c, 1]), [h * c, a, b]);
}

/** A product with a strict triangle; undefined where not all entries are finite, whose product with 0 is NaN. */
function byProduct(
  t: Operations,
  chunks: tf.Tensor,
  start: tf.Tensor | undefined,
  reverse: boolean,
): tf.Tensor | undefined {
  const [h, c, size] = chunks.shape as number[];
  const ones = triangle(c, reverse ? 'after' : 'before');
  const sums = freeing(t.matMul(ones, chunks), ones);
  // The first sum is over no entry: 0 times all of them.
  const zeros = tf.slice(sums, [0, reverse ? c - 1 : 0, 0], [h, 1, size]);
  const total = freeing(t.sum(freeing(t.reshape(zeros, [h * size]), zeros), 0), zeros);
  const [finite] = freeing(total.dataSync(), total);
  if (finite !== 0) {
    return freeing(undefined, sums);
  }
  return start === undefined ? sums : freeing(t.add(sums, start), sums);
}

/** One addition after the other: what is not finite never reaches an earlier entry. */
function byAdditions(
  t: Operations,
  chunks: tf.Tensor,
  start: tf.Tensor | undefined,
  reverse: boolean,
): tf.Tensor {
  const [h, , size] = chunks.shape as number[];
  const parts = t.unstack(chunks);
  if (reverse) {
    parts.reverse();
  }
  const before = [start === undefined ? tf.zeros([h, size]) : t.reshape(start, [h, size])];
  for (const part of parts.slice(0, -1)) {
    before.push(t.add(before[before.length - 1], part));
  }
  const sums = t.stack(reverse ? [...before].reverse() : before);
  return freeing(sums, ...parts, ...before);
}
