/** A feature map that treats queries and keys alike, each row by itself, and has no weights. */
import type * as tf from '@tensorflow/tfjs-core';
import type {FeatureMap} from './types';

interface RowWise {
  name: string;
  eps?: number;
  dim(inputDim: number): number;
  /** [.., r] -> [.., dim(r)] */
  map(x: tf.Tensor): tf.Tensor;
  getConfig?(): {[key: string]: unknown};
}

export const rowWise = ({name, eps, dim, map, getConfig = () => ({})}: RowWise): FeatureMap => ({
  name,
  ...(eps === undefined ? {} : {eps}),
  dim,
  queries: (x) => map(x),
  keys: (x) => map(x),
  getConfig,
});
