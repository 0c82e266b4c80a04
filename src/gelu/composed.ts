/** gelu and its derivative in stock differentiable operations: any backend, any order. */
import * as tf from '@tensorflow/tfjs-core';
import type {GeluForm} from './spec';

const RATE = 2 * Math.sqrt(2 / Math.PI);
const CUBIC = 0.044715;

export function composedGelu(x: tf.Tensor, form: GeluForm): tf.Tensor {
  return tf.tidy(() => tf.mul(x, form === 'none' ? normalCdf(x) : gate(x)));
}

/** dL/dx from dL/dy. */
export function composedGeluGrad(x: tf.Tensor, dy: tf.Tensor, form: GeluForm): tf.Tensor {
  return tf.tidy(() => {
    if (form === 'none') {
      const density = tf.mul(tf.exp(tf.mul(tf.square(x), -0.5)), 1 / Math.sqrt(2 * Math.PI));
      return tf.mul(dy, tf.add(normalCdf(x), tf.mul(x, density)));
    }
    // s + x s (1 - s) times the derivative of the exponent.
    const s = gate(x);
    const rate = tf.add(tf.mul(tf.square(x), 3 * CUBIC * RATE), RATE);
    return tf.mul(dy, tf.add(s, tf.mul(tf.mul(x, rate), tf.mul(s, tf.sub(1, s)))));
  });
}

/** Phi(x). */
function normalCdf(x: tf.Tensor): tf.Tensor {
  return tf.add(tf.mul(tf.erf(tf.mul(x, Math.SQRT1_2)), 0.5), 0.5);
}

/** (1 + tanh(u)) / 2 = sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3). */
function gate(x: tf.Tensor): tf.Tensor {
  return tf.sigmoid(tf.mul(x, tf.add(tf.mul(tf.square(x), CUBIC * RATE), RATE)));
}
