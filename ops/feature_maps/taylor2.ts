import {secondDegree, secondDegreeCount, type Terms} from '../../src/second_degree';
import {checkNoConfig} from './pointwise_map';
import {rowWise} from './row_wise';
import type {FeatureMap} from './types';

const terms = (r: number): Terms => ({
  constant: 1,
  linear: r ** -0.25,
  squares: 1 / Math.sqrt(2 * r),
  pairs: 1 / Math.sqrt(r),
});

/**
 * The second-order Taylor expansion of exp(q.k / sqrt(r)): phi(q).phi(k) = 1 + s + s^2 / 2 with s = q.k / sqrt(r). The
 * r' = 1 + r + r(r+1)/2 features, in this order:
 *
 *     1,  x_i / r^(1/4),  x_i^2 / (sqrt(2) sqrt(r)),  x_i x_j / sqrt(r) for i < j, row-major
 *
 * Equal products are merged, which makes half of the 1 + r + r^2 features of the paper and the same similarity. It
 * redefines the similarity, and is near softmax where |q.k| / sqrt(r) is below 1. Never negative.
 *
 * Arora et al. 2024 (Based), https://arxiv.org/abs/2402.18668, section 4.1.
 *
 * ```js
 * tfla.featureMaps.taylor2().queries(tf.tensor2d([[2, 3]])).print();
 * // [[1, 1.6817929, 2.5226893, 2, 4.5, 4.2426405]]
 * ```
 */
export const taylor2 = (config?: object): FeatureMap => {
  checkNoConfig('taylor2', config);
  return rowWise({
    name: 'taylor2',
    dim: (r) => secondDegreeCount(terms(r), r),
    map: (x) => secondDegree(x, terms(x.shape[x.rank - 1])),
  });
};
