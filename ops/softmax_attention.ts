/** Softmax attention that can be trained on every backend. */
import * as tf from '@tensorflow/tfjs-core';
import {toFloat} from '../src/convert';
import {checkBoolean, checkNumber, checkOneOf, checkOptions} from '../src/errors';
import type {DataFormat} from '../src/linear_attention/spec';
import {attend} from '../src/softmax_attention';
import {checkAttentionShapes, checkShape, type Input} from './attention_shapes';

/** Options of `softmaxAttention`. */
export interface SoftmaxAttentionOptions {
  /** A query sees its own key and earlier ones only. Needs Nq = Nk. Default false. */
  causal?: boolean;
  /** [B,Nk]; keeps where != 0. Not differentiated. */
  mask?: Input;
  /** Multiplies q.k. Default 1/sqrt(r). */
  scale?: number;
  /** 'BHND' ([B,H,N,.], default) or 'BNHD' ([B,N,H,.]) for q, k, v and the output. */
  dataFormat?: DataFormat;
}

const FN = 'softmaxAttention';

/**
 * Softmax attention: `o_i = sum_j softmax_j(scale q_i.k_j) v_j`, differentiable to any order on every backend.
 *
 * Time and memory are O(Nq Nk). Masked keys and values have no effect, forward or backward, whatever they hold (NaN
 * included), and get gradients of exactly 0. A query whose keys are all masked gives 0.
 *
 * ```js
 * const x = tf.randomNormal([1, 2, 5, 8], 0, 1, 'float32', 1);
 * softmaxAttention(x, x, x, {causal: true}).print(); // [1,2,5,8]
 * ```
 *
 * @param q [B,H,Nq,r], or [B,Nq,r] for one head.
 * @param k [B,H,Nk,r].
 * @param v [B,H,Nk,d].
 * @returns [B,H,Nq,d] in the layout of `dataFormat`; [B,Nq,d] for inputs of rank 3.
 * @throws When shapes disagree, when causal and Nq != Nk, on unknown options.
 *
 * Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.1.
 */
export function softmaxAttention(
  q: Input,
  k: Input,
  v: Input,
  options: SoftmaxAttentionOptions = {},
): tf.Tensor {
  checkOptions(FN, options, ['causal', 'mask', 'scale', 'dataFormat']);
  const {causal = false, mask, scale, dataFormat = 'BHND'} = options;
  checkBoolean(FN, 'causal', causal);
  checkOneOf(FN, 'dataFormat', dataFormat, ['BHND', 'BNHD']);
  if (scale !== undefined) {
    checkNumber(FN, 'scale', scale);
  }
  const {oneHead, B, H, Nq, Nk, r, d} = checkAttentionShapes(FN, q, k, v, dataFormat, causal);
  if (mask !== undefined) {
    checkShape(FN, 'mask', mask, [B, Nk], '[B,Nk]');
  }
  if (Nq * Nk === 0) {
    return tf.zeros(oneHead ? [B, Nq, d] : dataFormat === 'BHND' ? [B, H, Nq, d] : [B, Nq, H, d]);
  }
  return tf.tidy(() => {
    const heads = (x: Input) => headsFirst(toFloat(x), oneHead, dataFormat);
    const output = attend(heads(q), heads(k), heads(v), {
      scale: scale ?? 1 / Math.sqrt(r),
      causal,
      mask: mask === undefined ? undefined : toFloat(mask),
    });
    if (oneHead) {
      return tf.reshape(output, [B, Nq, d]);
    }
    return dataFormat === 'BHND' ? output : tf.transpose(output, [0, 2, 1, 3]);
  });
}

/** [B,H,N,.] of x in the layout of `dataFormat`, or [B,N,.]. */
function headsFirst(x: tf.Tensor, oneHead: boolean, dataFormat: DataFormat): tf.Tensor4D {
  if (oneHead) {
    const [B, N, last] = x.shape;
    return tf.reshape(x, [B, 1, N, last]);
  }
  return (dataFormat === 'BHND' ? x : tf.transpose(x, [0, 2, 1, 3])) as tf.Tensor4D;
}
