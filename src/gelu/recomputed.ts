/**
 * The normal distribution and the logistic function with gradients of any order.
 *
 * tfjs's exp, sigmoid and tanh keep their *output* for the gradient, and saved outputs are cut off from outer tapes:
 * grad(grad(exp)) comes out wrong. These kernels keep their input and compute again.
 */
import * as tf from '@tensorflow/tfjs-core';

type Name = 'NormalCdf' | 'NormalDensity' | 'Logistic';

const VALUES: {[name in Name]: (x: tf.Tensor) => tf.Tensor} = {
  NormalCdf: (x) => tf.add(tf.mul(tf.erf(tf.mul(x, Math.SQRT1_2)), 0.5), 0.5),
  NormalDensity: (x) => tf.mul(tf.exp(tf.mul(tf.square(x), -0.5)), 1 / Math.sqrt(2 * Math.PI)),
  Logistic: (x) => tf.sigmoid(x),
};

const SLOPES: {[name in Name]: (x: tf.Tensor) => tf.Tensor} = {
  NormalCdf: (x) => normalDensity(x),
  NormalDensity: (x) => tf.neg(tf.mul(x, normalDensity(x))),
  Logistic: (x) => tf.mul(logistic(x), logistic(tf.neg(x))), // s (1 - s) without cancellation
};

/** Phi(x). */
export const normalCdf = (x: tf.Tensor): tf.Tensor => run('NormalCdf', x);
/** exp(-x^2 / 2) / sqrt(2 pi). */
export const normalDensity = (x: tf.Tensor): tf.Tensor => run('NormalDensity', x);
/** 1 / (1 + exp(-x)). */
export const logistic = (x: tf.Tensor): tf.Tensor => run('Logistic', x);

function run(kernelName: Name, x: tf.Tensor): tf.Tensor {
  const backendName = tf.getBackend();
  if (tf.getKernel(kernelName, backendName) == null) {
    const kernelFunc: tf.KernelFunc = ({inputs}) =>
      tf.tidy(() => VALUES[kernelName](inputs['x'] as tf.Tensor));
    tf.registerKernel({kernelName, backendName, kernelFunc});
  }
  if (tf.getGradient(kernelName) == null) {
    tf.registerGradient({
      kernelName,
      inputsToSave: ['x'],
      gradFunc: (dy, [saved]) => ({x: () => tf.mul(dy as tf.Tensor, SLOPES[kernelName](saved))}),
    });
  }
  return tf.engine().runKernel(kernelName, {x}) as tf.Tensor;
}
