/** gelu and its derivative in stock differentiable operations: any backend, any order. */
import * as tf from '@tensorflow/tfjs-core';
import {logistic, normalCdf, normalDensity} from './smooth';
import type {GeluForm} from './spec';

const RATE = 2 * Math.sqrt(2 / Math.PI);
const CUBIC = 0.044715;

export function composedGelu(x: tf.Tensor, form: GeluForm): tf.Tensor {
  return tf.tidy(() => tf.mul(x, form === 'none' ? normalCdf(x) : logistic(exponent(x))));
}

/** dL/dx from dL/dy. */
export function composedGeluGrad(x: tf.Tensor, dy: tf.Tensor, form: GeluForm): tf.Tensor {
  return tf.tidy(() => {
    if (form === 'none') {
      return tf.mul(dy, tf.add(normalCdf(x), tf.mul(x, normalDensity(x))));
    }
    // s + x s (1 - s) times the derivative of the exponent.
    const u = exponent(x);
    const s = logistic(u);
    const rate = tf.add(tf.mul(tf.square(x), 3 * CUBIC * RATE), RATE);
    return tf.mul(dy, tf.add(s, tf.mul(tf.mul(x, rate), tf.mul(s, logistic(tf.neg(u))))));
  });
}

/** 2 sqrt(2/pi) (x + 0.044715 x^3): (1 + tanh(u)) / 2 is the logistic function of 2 u. */
function exponent(x: tf.Tensor): tf.Tensor {
  return tf.mul(x, tf.add(tf.mul(tf.square(x), CUBIC * RATE), RATE));
}
