import * as tf from '@tensorflow/tfjs-core';
import {composedLayerNorm} from './composed';
import {LayerNorm} from './spec';

/** Normalizes x [..,D] over its last axis; gamma and beta [D]. One kernel each way on cpu and wasm. */
export function layerNorm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: number): tf.Tensor {
  return tf.getKernel(LayerNorm, tf.getBackend()) == null
    ? composedLayerNorm(x, gamma, beta, epsilon)
    : (tf.engine().runKernel(LayerNorm, {x, gamma, beta}, {epsilon}) as tf.Tensor);
}
