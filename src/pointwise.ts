/**
 * Pointwise feature maps: the ones that kernels fuse. Each is given as a stock-op form (any backend), as a scalar
 * function (oracle and plain-JS kernels) and by its derivative.
 *
 * | name        | phi(x)                     | phi'(x)                          |
 * |-------------|----------------------------|----------------------------------|
 * | identity    | x                          | 1                                |
 * | elu         | x > 0 ? x + 1 : exp(x)     | min(phi, 1)                      |
 * | relu        | max(x, 0)                  | x > 0 ? 1 : 0                    |
 * | squaredRelu | max(x, 0)^2                | 2 max(x, 0)                      |
 * | exp         | exp(x)                     | phi                              |
 *
 * elu is elu(x) + 1 of Katharopoulos et al. 2020 (https://arxiv.org/abs/2006.16236, section 3.2.1), written so that
 * nothing cancels: `elu(x) + 1` is exactly 0 at x = -12 in half precision, exp(x) is not.
 */
import * as tf from '@tensorflow/tfjs-core';
import {isPositive} from './conditions';
import {exponential} from './recomputed';

/** Maps that kernels compute themselves, value by value. */
export type PointwiseMap = 'identity' | 'elu' | 'relu' | 'squaredRelu' | 'exp';

export const POINTWISE_MAPS: readonly PointwiseMap[] = ['identity', 'elu', 'relu', 'squaredRelu', 'exp'];

/** phi(x) of one number, in double precision. NaN gives NaN. */
export function pointwiseScalar(map: PointwiseMap, x: number): number {
  switch (map) {
    case 'identity':
      return x;
    case 'elu':
      return x > 0 ? x + 1 : Math.exp(x);
    case 'relu':
      return Math.max(x, 0);
    case 'squaredRelu':
      return Math.max(x, 0) ** 2;
    case 'exp':
      return Math.exp(x);
  }
}

/** phi'(x) of one number, in double precision. */
export function pointwiseDerivative(map: PointwiseMap, x: number): number {
  switch (map) {
    case 'identity':
      return 1;
    case 'elu':
      return x > 0 ? 1 : Math.exp(x);
    case 'relu':
      return x > 0 ? 1 : 0;
    case 'squaredRelu':
      return x > 0 ? 2 * x : 0;
    case 'exp':
      return Math.exp(x);
  }
}

/** phi of n numbers of x from `at` on, into `out` from `to` on. */
export function mapRow(
  map: PointwiseMap,
  x: Float32Array,
  at: number,
  out: Float32Array,
  to: number,
  n: number,
): void {
  switch (map) {
    case 'identity':
      for (let i = 0; i < n; i++) out[to + i] = x[at + i];
      return;
    case 'elu':
      for (let i = 0; i < n; i++) out[to + i] = x[at + i] > 0 ? x[at + i] + 1 : Math.exp(x[at + i]);
      return;
    default:
      for (let i = 0; i < n; i++) out[to + i] = pointwiseScalar(map, x[at + i]);
  }
}

/** dL/dx of a row, into `dx` from `at` on, from rows of dL/dphi and phi that start at `from`, and x's at `at`. */
export function chainRow(
  map: PointwiseMap,
  x: Float32Array,
  at: number,
  phi: Float32Array,
  dPhi: Float32Array,
  from: number,
  dx: Float32Array,
  n: number,
): void {
  switch (map) {
    case 'identity':
      for (let i = 0; i < n; i++) dx[at + i] = dPhi[from + i];
      return;
    case 'elu':
      for (let i = 0; i < n; i++) dx[at + i] = dPhi[from + i] * (x[at + i] > 0 ? 1 : phi[from + i]);
      return;
    case 'exp':
      for (let i = 0; i < n; i++) dx[at + i] = dPhi[from + i] * phi[from + i];
      return;
    default:
      for (let i = 0; i < n; i++) dx[at + i] = dPhi[from + i] * pointwiseDerivative(map, x[at + i]);
  }
}

/**
 * exp(min(x, 0)), the exponential branch of elu + 1 and its derivative. The minimum is a selection, which can be
 * differentiated any number of times and has derivative 1 at x = 0 (tf.minimum only once, relu has 0 there).
 */
const expOfNegative = (x: tf.Tensor, positive: tf.Tensor): tf.Tensor =>
  exponential(tf.where(positive, tf.zerosLike(x), x));

/** phi(x) in stock differentiable ops. `identity` returns x itself. */
export function pointwise(map: PointwiseMap, x: tf.Tensor): tf.Tensor {
  switch (map) {
    case 'identity':
      return x;
    case 'elu':
      return tf.tidy(() => {
        const positive = isPositive(x);
        return tf.where(positive, tf.add(x, 1), expOfNegative(x, positive));
      });
    case 'relu':
      return tf.relu(x);
    case 'squaredRelu':
      return tf.tidy(() => tf.square(tf.relu(x)));
    case 'exp':
      return exponential(x);
  }
}

/** dL/dx from dL/dphi, x and phi(x), in stock ops that are themselves differentiable. */
export function pointwiseGradient(
  map: PointwiseMap,
  dPhi: tf.Tensor,
  x: tf.Tensor,
  phi: tf.Tensor,
): tf.Tensor {
  switch (map) {
    case 'identity':
      return dPhi;
    case 'elu':
      return tf.tidy(() => tf.mul(dPhi, expOfNegative(x, isPositive(x))));
    case 'relu':
      return tf.tidy(() => tf.mul(dPhi, tf.step(x)));
    case 'squaredRelu':
      return tf.tidy(() => tf.mul(dPhi, tf.mul(tf.relu(x), 2)));
    case 'exp':
      return tf.tidy(() => tf.mul(dPhi, phi));
  }
}
