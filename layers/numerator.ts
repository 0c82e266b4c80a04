/**
 * RoFormer's linear attention (Su et al. 2021, https://arxiv.org/abs/2104.09864, section 3.3): positions turn the
 * features in the numerator only, so that the denominator stays a sum of positive terms.
 *
 *     out_m = sum_n (R_m phi(q_m)).(R_n phi(k_n)) v_n / (sum_n phi(q_m).phi(k_n) + eps)
 *
 * Two kernel calls. The state holds s of the turned features and z of the others.
 */
import * as tf from '@tensorflow/tfjs-core';
import {type LinearAttentionState, linearAttention} from '../ops';
import {isNonZero} from '../src/conditions';

/** Mapped features and their turned versions, [B,N,H,r'], with the values [B,N,H,d]. */
export interface Features {
  queries: tf.Tensor4D;
  keys: tf.Tensor4D;
  turnedQueries: tf.Tensor4D;
  turnedKeys: tf.Tensor4D;
  v: tf.Tensor4D;
}

interface Options {
  causal: boolean;
  normalize: boolean;
  eps: number;
  mask?: tf.Tensor;
  initialState?: LinearAttentionState;
}

/** Output [B,N,H,d] and the state after the last key. Call it inside a tidy. */
export function attendNumerator(
  {queries, keys, turnedQueries, turnedKeys, v}: Features,
  {causal, normalize, eps, mask, initialState}: Options,
): {output: tf.Tensor4D; state: LinearAttentionState} {
  const options = {
    featureMap: 'identity',
    normalize: false,
    causal,
    dataFormat: 'BNHD',
    returnState: true,
    ...(mask && {mask}),
  } as const;
  const above = linearAttention(turnedQueries, turnedKeys, v, {
    ...options,
    ...(initialState && {initialState: {s: initialState.s}}),
  });
  // v = 1 makes the numerator of this call the denominator: [B,N,H,1].
  const [batch, length, heads] = v.shape;
  const below = linearAttention(queries, keys, tf.ones([batch, length, heads, 1]), {
    ...options,
    ...(initialState && {initialState: {s: tf.expandDims(initialState.z, 3)}}),
  });
  const output = normalize ? guardedDivide(above.output, below.output, eps) : above.output;
  return {
    output: output as tf.Tensor4D,
    state: {s: above.state.s, z: tf.squeeze(below.state.s, [3])},
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
