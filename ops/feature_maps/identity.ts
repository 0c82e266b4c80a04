import {pointwiseMap} from './pointwise_map';
import type {FeatureMap} from './types';

/**
 * x itself, for queries and keys that are mapped already.
 *
 * ```js
 * tfla.featureMaps.identity().queries(tf.tensor1d([-1, 0, 2])).print(); // [-1, 0, 2]
 * ```
 */
export const identity = (config?: object): FeatureMap => pointwiseMap('identity', config);
