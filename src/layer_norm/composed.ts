/** Layer normalization and its gradient in stock differentiable operations: any backend, any order. */
import * as tf from '@tensorflow/tfjs-core';

/** (x - mean) / sqrt(var + epsilon), and 1 / sqrt(var + epsilon) as [..,1]. */
function normalized(x: tf.Tensor, epsilon: number): {unit: tf.Tensor; inverse: tf.Tensor} {
  const centred = tf.sub(x, tf.mean(x, -1, true));
  const inverse = tf.div(1, tf.sqrt(tf.add(tf.mean(tf.square(centred), -1, true), epsilon)));
  return {unit: tf.mul(centred, inverse), inverse};
}

export function composedLayerNorm(
  x: tf.Tensor,
  gamma: tf.Tensor,
  beta: tf.Tensor,
  epsilon: number,
): tf.Tensor {
  return tf.tidy(() => tf.add(tf.mul(normalized(x, epsilon).unit, gamma), beta));
}

/** [dx, dgamma, dbeta] */
export function composedLayerNormGrad(
  x: tf.Tensor,
  gamma: tf.Tensor,
  dy: tf.Tensor,
  epsilon: number,
): [tf.Tensor, tf.Tensor, tf.Tensor] {
  return tf.tidy(() => {
    const {unit, inverse} = normalized(x, epsilon);
    const g = tf.mul(dy, gamma);
    const along = tf.mul(unit, tf.mean(tf.mul(g, unit), -1, true));
    const dx = tf.mul(inverse, tf.sub(tf.sub(g, tf.mean(g, -1, true)), along));
    const size = gamma.size;
    const overRows = (rows: tf.Tensor) => tf.sum(tf.reshape(rows, [rows.size / size, size]), 0);
    return [dx, overRows(tf.mul(dy, unit)), overRows(dy)];
  });
}
