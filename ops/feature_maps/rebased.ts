import * as tf from '@tensorflow/tfjs-core';
import {checkNumber, checkOptions} from '../../src/errors';
import {layerNorm} from '../../src/layer_norm/run';
import {secondDegree, secondDegreeCount, type Terms} from '../../src/second_degree';
import type {FeatureMap, FeatureMapContext} from './types';
import {weightOf} from './weights';

/** Of `featureMaps.rebased`. */
export interface RebasedConfig {
  /** Added to the variance. Default 1e-5. */
  epsilon?: number;
}

const terms = (r: number): Terms => ({
  constant: 0,
  linear: 0,
  squares: 1 / Math.sqrt(r),
  pairs: Math.sqrt(2 / r),
});

/**
 * A learned quadratic kernel: y = layer norm of x over its features with a learned gain and offset, and
 * phi(q).phi(k) = (y_q . y_k)^2 / r. The r' = r(r+1)/2 features are y_i^2 / sqrt(r), then y_i y_j sqrt(2 / r) for i < j.
 * Where the Taylor map has a smallest weight above 0, this one can learn to give none.
 *
 * Weights: gamma [r] (ones) and beta [r] (zeros), trainable, shared by heads, queries and keys.
 *
 * Aksenov et al. 2024 (ReBased), https://arxiv.org/abs/2402.10644, section 4.
 *
 * ```js
 * const weights = {gamma: tf.ones([2]), beta: tf.zeros([2])};
 * tfla.featureMaps.rebased().queries(tf.tensor2d([[2, 4]]), {weights}).print();
 * // [[0.7070999, 0.7070999, -0.9999899]]
 * ```
 */
export function rebased(config: RebasedConfig = {}): FeatureMap {
  const fn = 'featureMaps.rebased';
  checkOptions(fn, config, ['epsilon']);
  const {epsilon = 1e-5} = config;
  checkNumber(fn, 'epsilon', epsilon, {min: 0, exclusive: true});
  const map = (x: tf.Tensor, ctx?: FeatureMapContext) =>
    tf.tidy(() => {
      const y = layerNorm(x, weightOf(fn, ctx, 'gamma'), weightOf(fn, ctx, 'beta'), epsilon);
      return secondDegree(y, terms(x.shape[x.rank - 1]));
    });
  return {
    name: 'rebased',
    dim: (r) => secondDegreeCount(terms(r), r),
    weights: (r) => [
      {name: 'gamma', shape: [r], initializer: 'ones', trainable: true},
      {name: 'beta', shape: [r], initializer: 'zeros', trainable: true},
    ],
    queries: map,
    keys: map,
    getConfig: () => ({epsilon}),
  };
}
