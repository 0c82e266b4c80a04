/** The gradient of LayerNorm, of any order: a kernel for the first, differentiable operations while an outer tape records. */
import * as tf from '@tensorflow/tfjs-core';
import {isHigherOrder} from '../tfjs';
import {composedLayerNormGrad} from './composed';
import {LayerNorm, LayerNormGrad} from './spec';

export const layerNormGradient: tf.GradConfig = {
  kernelName: LayerNorm,
  inputsToSave: ['x', 'gamma'],
  gradFunc: (dy, [x, gamma], attrs) => {
    const epsilon = attrs['epsilon'] as number;
    const [dx, dgamma, dbeta] = isHigherOrder()
      ? composedLayerNormGrad(x, gamma, dy as tf.Tensor, epsilon)
      : (tf.engine().runKernel(LayerNormGrad, {x, gamma, dy: dy as tf.Tensor}, {epsilon}) as tf.Tensor[]);
    return {x: () => dx, gamma: () => dgamma, beta: () => dbeta};
  },
};
