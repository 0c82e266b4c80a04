import {pointwiseMap} from './pointwise_map';
import type {FeatureMap} from './types';

/**
 * elu(x) + 1, that is x > 0 ? x + 1 : exp(x): positive everywhere, the default. It redefines the similarity; it does
 * not approximate softmax. Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236, equation 7.
 *
 * ```js
 * tfla.featureMaps.elu().queries(tf.tensor1d([-1, 0, 2])).print(); // [0.3678795, 1, 3]
 * ```
 */
export const elu = (config?: object): FeatureMap => pointwiseMap('elu', config);
