/**
 * Dropout whose masks come from explicit seeds, so that a run can be repeated and continued bit for bit.
 *
 * A layer's n-th call outside any scope draws from (its seed, n). Inside `withDropoutSeed(seed, f)` the n-th dropout of
 * f draws from (seed, n) instead: training sets one seed per micro-batch, and nothing about dropout has to be saved.
 */
import * as tf from '@tensorflow/tfjs-core';
import {mixSeed, random} from './random';

/** How many masks were drawn from a seed. A layer owns one; it is changed by `dropout`. */
export interface DropoutStream {
  seed: number;
  calls: number;
}

let scope: DropoutStream | null = null;

/** Runs `f` with every `dropout` in it drawing from `seed`, in the order of the calls. f must be synchronous. */
export function withDropoutSeed<T>(seed: number, f: () => T): T {
  const outer = scope;
  scope = {seed, calls: 0};
  try {
    return f();
  } finally {
    scope = outer;
  }
}

/**
 * x with each element set to 0 with probability `rate`, the others divided by 1 - rate.
 *
 * @param x Any float32 tensor.
 * @param rate In [0, 1). 0 gives a copy of x.
 * @param own The caller's stream, used outside `withDropoutSeed`.
 */
export function dropout<T extends tf.Tensor>(x: T, rate: number, own: DropoutStream): T {
  if (rate === 0) {
    return tf.clone(x);
  }
  const stream = scope ?? own;
  const rng = random(mixSeed(stream.seed, stream.calls++));
  const kept = 1 / (1 - rate);
  const bound = rate * 4294967296;
  const mask = new Float32Array(x.size);
  for (let i = 0; i < mask.length; i++) {
    mask[i] = rng.next() >= bound ? kept : 0;
  }
  return tf.tidy(() => tf.mul(x, tf.tensor(mask, x.shape, 'float32')));
}
