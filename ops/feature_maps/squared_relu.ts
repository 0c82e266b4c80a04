import {pointwiseMap} from './pointwise_map';
import type {FeatureMap} from './types';

/**
 * max(x, 0)^2: sharper weights than relu, with a continuous derivative. The activation is that of So et al. 2021
 * (Primer), https://arxiv.org/abs/2109.08668, section 3.
 *
 * ```js
 * tfla.featureMaps.squaredRelu().queries(tf.tensor1d([-1, 0, 2])).print(); // [0, 0, 4]
 * ```
 */
export const squaredRelu = (config?: object): FeatureMap => pointwiseMap('squaredRelu', config);
