/** The gradient of Gelu, of any order: a kernel for the first, differentiable operations while an outer tape records. */
import * as tf from '@tensorflow/tfjs-core';
import {isHigherOrder} from '../tfjs';
import {composedGeluGrad} from './composed';
import {formOf, Gelu, GeluGrad} from './spec';

export const geluGradient: tf.GradConfig = {
  kernelName: Gelu,
  inputsToSave: ['x'],
  gradFunc: (dy, [x], attrs) => ({
    x: () => {
      const form = formOf(attrs);
      return isHigherOrder()
        ? composedGeluGrad(x, dy as tf.Tensor, form)
        : (tf.engine().runKernel(GeluGrad, {x, dy: dy as tf.Tensor}, {form}) as tf.Tensor);
    },
  }),
};
