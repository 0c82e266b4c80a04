/** Sums of many tensors on every backend. */
import * as tf from '@tensorflow/tfjs-core';

/** A webgpu program has 8 storage buffers, one of them its output; tfjs's addN on webgpu gives all its inputs to one. */
const AT_ONCE = 7;

/** tf.addN of any number of tensors, at least one: on webgpu, tfjs's own fails for more than 7 without throwing. */
export function addAll(tensors: readonly tf.Tensor[]): tf.Tensor {
  return tf.tidy(() => {
    let sum = tf.addN(tensors.slice(0, AT_ONCE));
    for (let i = AT_ONCE; i < tensors.length; i += AT_ONCE - 1) {
      sum = tf.addN([sum, ...tensors.slice(i, i + AT_ONCE - 1)]);
    }
    return sum;
  });
}
