import * as tf from '@tensorflow/tfjs-core';
import {addAll} from '../src/add_all';
import {check, checkNumber, show} from '../src/errors';

/**
 * Root of the sum of the squares of all elements of all tensors, a scalar. NaN or Inf anywhere shows in it.
 *
 * ```js
 * training.globalNorm([tf.tensor1d([3]), tf.tensor1d([4])]).print();  // 5
 * ```
 *
 * @throws Error for what is no array of tensors.
 */
export function globalNorm(tensors: readonly tf.Tensor[]): tf.Scalar {
  checkTensors('training.globalNorm', tensors);
  return tf.tidy(() => {
    const squares = tensors.map((x) => tf.sum(tf.square(x)));
    return tf.sqrt(squares.length === 0 ? tf.scalar(0) : addAll(squares)) as tf.Scalar;
  });
}

/**
 * Scales all tensors by one factor so that their global norm is at most `maxNorm` (Pascanu et al. 2013,
 * https://arxiv.org/abs/1211.5063, algorithm 1). Returns new tensors, and the norm before clipping; all are the
 * caller's.
 *
 * ```js
 * const {clipped, norm} = training.clipByGlobalNorm([tf.tensor1d([3]), tf.tensor1d([4])], 1);  // 0.6, 0.8; 5
 * ```
 *
 * @throws Error for what is no array of tensors, and a maxNorm that is not above 0.
 */
export function clipByGlobalNorm(
  tensors: readonly tf.Tensor[],
  maxNorm: number,
): {clipped: tf.Tensor[]; norm: tf.Scalar} {
  const fn = 'training.clipByGlobalNorm';
  checkTensors(fn, tensors);
  checkNumber(fn, 'maxNorm', maxNorm, {min: 0, exclusive: true});
  return tf.tidy(() => {
    const norm = globalNorm(tensors);
    const factor = tf.div(maxNorm, tf.maximum(norm, maxNorm));
    return {clipped: tensors.map((x) => tf.mul(x, factor)), norm};
  });
}

function checkTensors(fn: string, tensors: unknown): void {
  check(
    Array.isArray(tensors) && tensors.every((x) => x instanceof tf.Tensor && !x.isDisposed),
    fn,
    () => `expected tensors to be an array of live tensors; got ${show(tensors)}.`,
  );
}
