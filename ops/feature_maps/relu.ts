import {pointwiseMap} from './pointwise_map';
import type {FeatureMap} from './types';

/**
 * max(x, 0). A query that shares no positive feature with any key has denominator 0, and output 0.
 * Choromanski et al. 2021, https://arxiv.org/abs/2009.14794, section 4 (Performer-ReLU without random features).
 *
 * ```js
 * tfla.featureMaps.relu().queries(tf.tensor1d([-1, 0, 2])).print(); // [0, 0, 2]
 * ```
 */
export const relu = (config?: object): FeatureMap => pointwiseMap('relu', config);
