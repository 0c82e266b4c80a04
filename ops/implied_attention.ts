/** The attention weights that linear attention implies, for looking at. */
import * as tf from '@tensorflow/tfjs-core';
import {toFloat} from '../src/convert';
import {check, checkBoolean, checkOptions} from '../src/errors';
import {checkQueryKeyShapes, type Input} from './attention_shapes';
import type {FeatureMapLike} from './feature_maps/registry';
import {checkMask, checkShared, runCall} from './linear_attention_call';

/** Options of `impliedAttention`. */
export interface ImpliedAttentionOptions {
  /** Name or FeatureMap. Default 'elu'. */
  featureMap?: FeatureMapLike;
  /** Each query sees the keys up to its own position; needs Nq = Nk. Default false. */
  causal?: boolean;
  /** [B,Nk]; keys where it is 0 get weight 0. */
  mask?: Input;
  /** Added to the denominator. Default: the map's own eps, else 1e-6. */
  eps?: number;
  /** Tensors for the weights of a map that has some, by name. */
  featureMapWeights?: {[name: string]: tf.Tensor};
}

const FN = 'impliedAttention';

/**
 * The matrix of weights that linear attention never forms: `w_ij = phi(q_i).phi(k_j) / (sum_j phi(q_i).phi(k_j) + eps)`,
 * so that w v is what linearAttention(q, k, v) gives, with the same options. Rows sum to 1 (up to eps); a row whose
 * denominator is 0 is 0. O(Nq Nk) time and memory: for pictures and tests, not for long sequences.
 *
 * ```js
 * const x = tf.randomNormal([1, 1, 4, 8], 0, 1, 'float32', 1);
 * tfla.impliedAttention(x, x, {causal: true}).print(); // [1,1,4,4], lower triangular
 * ```
 *
 * @param q [B,H,Nq,r], or [B,Nq,r] for one head.
 * @param k [B,H,Nk,r].
 * @returns [B,H,Nq,Nk]; [B,Nq,Nk] for inputs of rank 3.
 * @throws When shapes disagree, when causal and Nq != Nk or the map cannot be causal, on unknown options.
 */
export function impliedAttention(q: Input, k: Input, options: ImpliedAttentionOptions = {}): tf.Tensor {
  checkOptions(FN, options, ['featureMap', 'causal', 'mask', 'eps', 'featureMapWeights']);
  const {causal = false, mask} = options;
  checkBoolean(FN, 'causal', causal);
  const sizes = checkQueryKeyShapes(FN, q, k, causal);
  const {oneHead, B, H, Nq, Nk, r} = sizes;
  const shared = checkShared(FN, options, sizes);
  check(
    !causal || shared.map.causal !== false,
    FN,
    () =>
      `feature map '${shared.map.name}' looks at the whole sequence and cannot be causal; got causal = true.`,
  );
  checkMask(FN, mask, [B, Nk], '[B,Nk]');
  if (Nq * Nk === 0) {
    return tf.zeros(oneHead ? [B, Nq, Nk] : [B, H, Nq, Nk]);
  }
  return tf.tidy(() => {
    // The j-th value is the j-th unit vector: what a query collects is its weights.
    const values = tf.tile(tf.reshape(tf.eye(Nk), [1, 1, Nk, Nk]), [B, H, 1, 1]);
    const {output} = runCall(
      {
        ...shared,
        fn: FN,
        sizes: {...sizes, d: Nk},
        causal,
        normalize: true,
        dataFormat: 'BHND',
        offset: 0,
        mask,
      },
      tf.reshape(toFloat(q), [B, H, Nq, r]),
      tf.reshape(toFloat(k), [B, H, Nk, r]),
      values,
    );
    return oneHead ? tf.reshape(output, [B, Nq, Nk]) : output;
  });
}
