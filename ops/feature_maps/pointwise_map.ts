/** A feature map that is one function of each number: kernels fuse it, and r' = r. */
import * as tf from '@tensorflow/tfjs-core';
import {checkOptions} from '../../src/errors';
import {type PointwiseMap, pointwise} from '../../src/pointwise';
import type {FeatureMap} from './types';

/** Maps without settings take no config, or the empty one that their getConfig returns. */
export const checkNoConfig = (name: string, config: unknown): void =>
  checkOptions(`featureMaps.${name}`, config, [], 'config');

/** The FeatureMap of a pointwise function. `queries` and `keys` never return x itself. */
export function pointwiseMap(name: PointwiseMap, config: unknown, eps?: number): FeatureMap {
  checkNoConfig(name, config);
  const map = (x: tf.Tensor): tf.Tensor => {
    const phi = pointwise(name, x);
    return phi === x ? tf.clone(x) : phi;
  };
  return {
    name,
    pointwise: name,
    ...(eps === undefined ? {} : {eps}),
    dim: (inputDim) => inputDim,
    queries: map,
    keys: map,
    getConfig: () => ({}),
  };
}
