/** The gradient of a rotation is the rotation back: the same kernel, so gradients of any order are there. */
import * as tf from '@tensorflow/tfjs-core';
import {Rotate} from './spec';

export const rotateGradient: tf.GradConfig = {
  kernelName: Rotate,
  inputsToSave: ['cos', 'sin'],
  gradFunc: (dy, [cos, sin], attrs) => ({
    x: () =>
      tf.tidy(
        () => tf.engine().runKernel(Rotate, {x: dy as tf.Tensor, cos, sin: tf.neg(sin)}, attrs) as tf.Tensor,
      ),
    // Tables of constants.
    cos: () => tf.zerosLike(cos),
    sin: () => tf.zerosLike(sin),
  }),
};
