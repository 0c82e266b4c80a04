/** The rotary kernel in stock differentiable operations: any backend, any order. */
import * as tf from '@tensorflow/tfjs-core';

export function composedRotate(
  {x, cos, sin}: {x: tf.TensorInfo; cos: tf.TensorInfo; sin: tf.TensorInfo},
  {pairing, dataFormat}: tf.NamedAttrMap,
): tf.Tensor {
  const [values, cosines, sines] = [x, cos, sin] as tf.Tensor[];
  return tf.tidy(() => {
    const r = values.shape[3] as number;
    const [rows, N] = cosines.shape;
    const shape = dataFormat === 'BHND' ? [rows, 1, N, r] : [rows, N, 1, r];
    const pairs =
      pairing === 'half'
        ? tf.reverse(tf.reshape(values, [-1, 2, r / 2]), 1)
        : tf.reverse(tf.reshape(values, [-1, 2]), 1);
    const swapped = tf.reshape(pairs, values.shape);
    return tf.add(tf.mul(values, tf.reshape(cosines, shape)), tf.mul(swapped, tf.reshape(sines, shape)));
  });
}
