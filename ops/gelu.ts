/** The Gaussian error linear unit. */
import * as tf from '@tensorflow/tfjs-core';
import {shapeOf, toFloat} from '../src/convert';
import {checkOneOf, checkOptions} from '../src/errors';
import {composedGelu} from '../src/gelu/composed';
import {Gelu} from '../src/gelu/spec';

export interface GeluOptions {
  /** 'none': x Phi(x) by the error function, the default. 'tanh': the approximation that GPT-2 uses. */
  approximate?: 'none' | 'tanh';
}

/**
 * gelu(x) = x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016,
 * https://arxiv.org/abs/1606.08415, section 2); 'tanh' is 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
 *
 * ```js
 * gelu([-1, 0, 1]).print();  // -0.159, 0, 0.841
 * ```
 *
 * Differentiable to any order. One kernel each way on wasm and cpu, stock operations elsewhere.
 *
 * @param x any shape. @returns the same shape, float32.
 */
export function gelu(x: tf.Tensor | tf.TensorLike, options: GeluOptions = {}): tf.Tensor {
  checkOptions('gelu', options, ['approximate']);
  const {approximate = 'none'} = options;
  checkOneOf('gelu', 'approximate', approximate, ['none', 'tanh']);
  shapeOf('gelu', 'x', x);
  return tf.tidy(() => {
    const $x = toFloat(x);
    return tf.getKernel(Gelu, tf.getBackend()) == null
      ? composedGelu($x, approximate)
      : (tf.engine().runKernel(Gelu, {x: $x}, {form: approximate}) as tf.Tensor);
  });
}
