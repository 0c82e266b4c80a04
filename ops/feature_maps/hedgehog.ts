import * as tf from '@tensorflow/tfjs-core';
import {checkBoolean, checkOneOf, checkOptions} from '../../src/errors';
import {evenProduct} from '../../src/even_product';
import {exponential} from '../../src/recomputed';
import {limited} from './limited';
import {softmaxOver} from './softmax';
import type {FeatureMap, FeatureMapContext} from './types';
import {weightOf} from './weights';

/** Of `featureMaps.hedgehog`. */
export interface HedgehogConfig {
  /** 'exp': [exp(y), exp(-y)], exponents above 30 taken as 30. 'softmax': the same divided by its sum over the features. Default 'exp'. */
  form?: 'exp' | 'softmax';
  /** y = x W + b; without, y = x W. Default true. */
  useBias?: boolean;
}

/**
 * A learned map per head, y = x W + b and phi(x) = [exp(y), exp(-y)], r' = 2r, made to be trained to mimic softmax
 * attention (`models.convert`). Its denominators may be tiny and right, so its eps is 0.
 *
 * Weights: W [H,r,r], which starts as the identity, and b [H,r], which starts at 0; trainable, shared by queries and keys.
 *
 * Zhang et al. 2024, https://arxiv.org/abs/2402.04347, section 4.
 *
 * ```js
 * const x = tf.randomNormal([1, 2, 5, 4]);
 * const featureMapWeights = {W: tf.randomNormal([2, 4, 4]), b: tf.zeros([2, 4])};
 * tfla.linearAttention(x, x, x, {featureMap: 'hedgehog', featureMapWeights, causal: true});
 * ```
 */
export function hedgehog(config: HedgehogConfig = {}): FeatureMap {
  const fn = 'featureMaps.hedgehog';
  checkOptions(fn, config, ['form', 'useBias']);
  const {form = 'exp', useBias = true} = config;
  checkOneOf(fn, 'form', form, ['exp', 'softmax']);
  checkBoolean(fn, 'useBias', useBias);
  const map = (x: tf.Tensor, ctx?: FeatureMapContext) =>
    tf.tidy(() => {
      const headAxis = ctx?.headAxis ?? 1;
      const product = perHead(x, weightOf(fn, ctx, 'W'), headAxis);
      const y = useBias ? tf.add(product, alongHeads(weightOf(fn, ctx, 'b'), x, headAxis)) : product;
      const both = tf.concat([y, tf.neg(y)], x.rank - 1);
      return form === 'exp' ? exponential(limited(both)) : softmaxOver(both, x.rank - 1, null);
    });
  return {
    name: 'hedgehog',
    eps: 0,
    dim: (r) => 2 * r,
    weights: (r, numHeads) => [
      {name: 'W', shape: [numHeads, r, r], initializer: identities(numHeads, r), trainable: true},
      ...(useBias ? [{name: 'b', shape: [numHeads, r], initializer: 'zeros', trainable: true}] : []),
    ],
    queries: map,
    keys: map,
    getConfig: () => ({form, useBias}),
  };
}

/** x times W [H,r,r], head by head: bhnr,hrs->bhns. Heads first, so that matMul has nothing to broadcast. */
function perHead(x: tf.Tensor, W: tf.Tensor, headAxis: number): tf.Tensor {
  const [H, r] = W.shape;
  const order = [headAxis, ...x.shape.map((_, axis) => axis).filter((axis) => axis !== headAxis)];
  const headsFirst = tf.transpose(x, order);
  const product = evenProduct(tf.reshape(headsFirst, [H, -1, r]), W);
  const back = order.map((_, axis) => order.indexOf(axis));
  return tf.transpose(tf.reshape(product, headsFirst.shape), back);
}

/** b [H,r] in the shape that broadcasts against x. */
function alongHeads(b: tf.Tensor, x: tf.Tensor, headAxis: number): tf.Tensor {
  const last = x.rank - 1;
  return tf.reshape(
    b,
    x.shape.map((size, axis) => (axis === headAxis || axis === last ? size : 1)),
  );
}

function identities(numHeads: number, r: number): Float32Array {
  const values = new Float32Array(numHeads * r * r);
  for (let h = 0; h < numHeads; h++) {
    for (let i = 0; i < r; i++) values[(h * r + i) * r + i] = 1;
  }
  return values;
}
