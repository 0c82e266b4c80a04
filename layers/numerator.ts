/**
 * RoFormer's linear attention (Su et al. 2021, https://arxiv.org/abs/2104.09864, section 3.3): positions turn the
 * features in the numerator only, so that the denominator stays a sum of positive terms.
 *
 *     out_m = sum_n (R_m phi(q_m)).(R_n phi(k_n)) v_n / (sum_n phi(q_m).phi(k_n) + eps)
 *
 * Two kernel calls. The state holds s of the turned features and z of the others.
 */
import * as tf from '@tensorflow/tfjs-core';
import {
  type FeatureMap,
  type FeatureMapContext,
  type LinearAttentionOptions,
  type LinearAttentionState,
  linearAttention,
} from '../ops';
import {isNonZero} from '../src/conditions';

/** One of the two calls: queries and keys [B,N,H,.] with the map that is still to be applied to them. */
export interface Side {
  queries: tf.Tensor4D;
  keys: tf.Tensor4D;
  options: Pick<LinearAttentionOptions, 'featureMap' | 'featureMapWeights' | 'offset' | 'positions'>;
}

interface Options {
  causal: boolean;
  normalize: boolean;
  eps: number;
  mask?: tf.Tensor;
  initialState?: LinearAttentionState;
}

/** Output [B,N,H,d] of v [B,N,H,d], and the state after the last key. Call it inside a tidy. */
export function attendNumerator(
  turned: Side,
  plain: Side,
  v: tf.Tensor4D,
  {causal, normalize, eps, mask, initialState}: Options,
): {output: tf.Tensor4D; state: LinearAttentionState} {
  const options = {
    normalize: false,
    causal,
    dataFormat: 'BNHD',
    returnState: true,
    ...(mask && {mask}),
  } as const;
  const above = linearAttention(turned.queries, turned.keys, v, {
    ...turned.options,
    ...options,
    ...(initialState && {initialState: {s: initialState.s}}),
  });
  // v = 1 makes the numerator of this call the denominator: [B,N,H,1].
  const [batch, length, heads] = v.shape;
  const below = linearAttention(plain.queries, plain.keys, tf.ones([batch, length, heads, 1]), {
    ...plain.options,
    ...options,
    ...(initialState && {initialState: {s: tf.expandDims(initialState.z, 3)}}),
  });
  const output = normalize ? guardedDivide(above.output, below.output, eps) : above.output;
  return {
    output: output as tf.Tensor4D,
    state: {s: above.state.s, z: tf.squeeze(below.state.s, [3])},
  };
}

/** The map with its features turned, for maps of many features: the op turns them a segment at a time. */
export function turnedMap(
  map: FeatureMap,
  turn: (x: tf.Tensor4D, positions: number | Int32Array) => tf.Tensor4D,
): FeatureMap {
  const turned = (features: tf.Tensor, ctx?: FeatureMapContext) =>
    turn(features as tf.Tensor4D, ctx?.positions ?? ctx?.offset ?? 0);
  return {
    ...map,
    queries: (x, ctx) => turned(map.queries(x, ctx), ctx),
    keys: (x, ctx) => turned(map.keys(x, ctx), ctx),
  };
}

/** Keys [B,N,H,.] selected to 0 where the mask [B,N] is 0, whatever they hold. */
export function selectKeys(mask: tf.Tensor, keys: tf.Tensor4D): tf.Tensor4D {
  const [batch, length] = keys.shape;
  if (keys.size === 0) {
    return keys;
  }
  return tf.where(isNonZero(tf.reshape(mask, [batch, length, 1, 1])), keys, 0);
}

/** num / (den + eps), and 0 with zero gradient where den is 0, in ops that tfjs differentiates to any order. */
function guardedDivide(num: tf.Tensor, den: tf.Tensor, eps: number): tf.Tensor {
  const some = isNonZero(den);
  const divisor = tf.where(some, tf.add(den, eps), tf.onesLike(den));
  const inverse = tf.where(some, tf.div(1, divisor), tf.zerosLike(den));
  return tf.mul(num, inverse);
}
