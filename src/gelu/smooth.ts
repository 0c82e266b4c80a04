/** The normal distribution and the logistic function with gradients of any order. */
import * as tf from '@tensorflow/tfjs-core';
import {recomputed} from '../recomputed';

/** Phi(x). */
export const normalCdf: (x: tf.Tensor) => tf.Tensor = recomputed(
  'NormalCdf',
  (x) => tf.add(tf.mul(tf.erf(tf.mul(x, Math.SQRT1_2)), 0.5), 0.5),
  (x) => normalDensity(x),
);

/** exp(-x^2 / 2) / sqrt(2 pi). */
export const normalDensity: (x: tf.Tensor) => tf.Tensor = recomputed(
  'NormalDensity',
  (x) => tf.mul(tf.exp(tf.mul(tf.square(x), -0.5)), 1 / Math.sqrt(2 * Math.PI)),
  (x) => tf.neg(tf.mul(x, normalDensity(x))),
);

/** 1 / (1 + exp(-x)). The slope is s (1 - s) without cancellation. */
export const logistic: (x: tf.Tensor) => tf.Tensor = recomputed(
  'Logistic',
  (x) => tf.sigmoid(x),
  (x) => tf.mul(logistic(x), logistic(tf.neg(x))),
);
