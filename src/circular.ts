/**
 * cos and sin to float32 accuracy on every backend. GPUs promise an absolute error of 2^-11 only, and a software GPU was
 * seen 1e-4 off: enough to spoil features whose products are sums of many. There they are computed from the series of the
 * half angle, |x| <= pi / 2, after whole turns were taken off in two steps (the first exact for small numbers of turns).
 */
import * as tf from '@tensorflow/tfjs-core';
import {recomputed} from './recomputed';

/** 2 pi = TURN + REST. */
const TURN = 6.28125;
const REST = 2 * Math.PI - TURN;

/** sum_i (-1)^i z^i / (2i + first)!, as many terms as float32 can tell apart below z = pi^2 / 4. */
function series(z: tf.Tensor, first: 0 | 1): tf.Tensor {
  let factorial = 1;
  const coefficients = [1];
  for (let i = 1; i < 7; i++) {
    const n = 2 * i + first;
    factorial *= n * (n - 1);
    coefficients.push((i % 2 === 0 ? 1 : -1) / factorial);
  }
  return coefficients.reduceRight<tf.Tensor | null>(
    (sum, c) => (sum === null ? tf.fill(z.shape, c) : tf.add(tf.mul(sum, z), c)),
    null,
  ) as tf.Tensor;
}

/** cos(x / 2) and sin(x / 2) of x less its whole turns. */
function halfAngle(x: tf.Tensor): {cos: tf.Tensor; sin: tf.Tensor} {
  const turns = tf.round(tf.mul(x, 1 / (2 * Math.PI)));
  const half = tf.mul(tf.sub(tf.sub(x, tf.mul(turns, TURN)), tf.mul(turns, REST)), 0.5);
  const z = tf.mul(half, half);
  return {cos: series(z, 0), sin: tf.mul(half, series(z, 1))};
}

export const accurateCos: (x: tf.Tensor) => tf.Tensor = recomputed(
  'AccurateCos',
  (x) => {
    const {sin} = halfAngle(x);
    return tf.sub(1, tf.mul(tf.mul(sin, sin), 2));
  },
  (x) => tf.neg(accurateSin(x)),
);

export const accurateSin: (x: tf.Tensor) => tf.Tensor = recomputed(
  'AccurateSin',
  (x) => {
    const {cos, sin} = halfAngle(x);
    return tf.mul(tf.mul(sin, cos), 2);
  },
  (x) => accurateCos(x),
);

const onGpu = (): boolean => ['webgl', 'webgpu'].includes(tf.getBackend());

/** cos(x), with gradients of any order. */
export const cosine = (x: tf.Tensor): tf.Tensor => (onGpu() ? accurateCos(x) : tf.cos(x));

/** sin(x), with gradients of any order. */
export const sine = (x: tf.Tensor): tf.Tensor => (onGpu() ? accurateSin(x) : tf.sin(x));
