import * as tf from '@tensorflow/tfjs-core';
import {isNonZero, offTape} from '../../src/conditions';
import {select} from '../../src/linear_attention/chunks';
import {exponential} from '../../src/recomputed';
import {isHalfFloat} from '../../src/tfjs';
import {checkNoConfig} from './pointwise_map';
import type {FeatureMap, FeatureMapContext} from './types';

/**
 * Efficient attention: queries are a softmax over their features, keys a softmax over the sequence, feature by feature.
 * Each weight of a key depends on all keys, so this map is not causal, and causal use is an error. Its denominators are
 * 1, its eps 0.
 *
 * Shen et al. 2018, https://arxiv.org/abs/1812.01243, section 3.2.
 *
 * ```js
 * tfla.featureMaps.softmax().queries(tf.tensor2d([[0, Math.log(3)]])).print(); // [[0.25, 0.75]]
 * ```
 */
export const softmax = (config?: object): FeatureMap => {
  checkNoConfig('softmax', config);
  return {
    name: 'softmax',
    causal: false,
    eps: 0,
    dim: (inputDim) => inputDim,
    queries: (x) => softmaxOver(x, x.rank - 1, null),
    keys: (x, ctx) => {
      const {sequenceAxis = 2} = ctx ?? {};
      return tf.tidy(() => softmaxOver(x, sequenceAxis, keptOf(x, sequenceAxis, ctx)));
    },
    getConfig: () => ({}),
  };
};

/** ctx.mask [B,N] in the shape that broadcasts against x; null keeps all. */
function keptOf(x: tf.Tensor, sequenceAxis: number, ctx: FeatureMapContext | undefined): tf.Tensor | null {
  if (ctx?.mask === undefined) {
    return null;
  }
  const shape = x.shape.map((size, axis) => (axis === 0 || axis === sequenceAxis ? size : 1));
  return tf.reshape(isNonZero(ctx.mask), shape);
}

/** Softmax along an axis over the entries that are kept; 0 for the others, and where none is kept. */
export function softmaxOver(x: tf.Tensor, axis: number, kept: tf.Tensor | null): tf.Tensor {
  return tf.tidy(() => {
    // Subtracting a constant from all changes nothing, so the maximum needs no gradient.
    const lowest = isHalfFloat() ? -6e4 : -1e30;
    const highest = offTape(() =>
      tf.max(kept === null ? x : tf.where(kept, x, tf.fill(x.shape, lowest)), axis, true),
    );
    const weights = select(kept, exponential(select(kept, tf.sub(x, highest))));
    const sum = tf.sum(weights, axis, true);
    if (kept === null) {
      return tf.div(weights, sum);
    }
    return tf.div(weights, tf.where(isNonZero(sum), sum, tf.onesLike(sum)));
  });
}
