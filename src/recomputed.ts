/**
 * Functions of one tensor with gradients of any order.
 *
 * tfjs's exp, sigmoid, tanh and softmax keep their *output* for the gradient, and saved outputs are cut off from outer
 * tapes: grad(grad(exp)) throws, or comes out wrong without a word. A kernel made here keeps its input and computes
 * again.
 */
import * as tf from '@tensorflow/tfjs-core';
import {openTapes} from './tfjs';

/**
 * @param kernelName A name that no other kernel has; registered when it is first used, for the backend in use.
 * @param value The function, in any ops: it runs inside a kernel.
 * @param slope Its derivative, in ops with gradients of any order.
 */
export function recomputed(
  kernelName: string,
  value: (x: tf.Tensor) => tf.Tensor,
  slope: (x: tf.Tensor) => tf.Tensor,
): (x: tf.Tensor) => tf.Tensor {
  return (x) => {
    const backendName = tf.getBackend();
    if (tf.getKernel(kernelName, backendName) == null) {
      tf.registerKernel({
        kernelName,
        backendName,
        kernelFunc: ({inputs}) => tf.tidy(() => value(inputs['x'] as tf.Tensor)),
      });
    }
    if (tf.getGradient(kernelName) == null) {
      tf.registerGradient({
        kernelName,
        inputsToSave: ['x'],
        gradFunc: (dy, [saved]) => ({x: () => tf.mul(dy as tf.Tensor, slope(saved))}),
      });
    }
    return tf.engine().runKernel(kernelName, {x}) as tf.Tensor;
  };
}

const recomputedExp = recomputed('RecomputedExp', tf.exp, (x) => exponential(x));

/** exp(x). One gradient is tfjs's own; under nested ones the input is kept instead of the output. */
export function exponential(x: tf.Tensor): tf.Tensor {
  return openTapes() > 1 ? recomputedExp(x) : tf.exp(x);
}
