import {pointwiseMap} from './pointwise_map';
import type {FeatureMap} from './types';

/**
 * exp(x), feature by feature. Its denominators may be tiny and right, so its eps is 0: only a denominator of exactly 0
 * gives output 0. exp(x) overflows float32 above x = 88, and the sum of products of queries and keys at x = 44; the layer
 * limits what rotary 'input' turns to 30.
 *
 * ```js
 * tfla.featureMaps.exp().queries(tf.tensor1d([-1, 0, 2])).print(); // [0.3678795, 1, 7.3890562]
 * ```
 */
export const exp = (config?: object): FeatureMap => pointwiseMap('exp', config, 0);
