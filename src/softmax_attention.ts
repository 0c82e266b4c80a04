/**
 * Softmax attention in stock ops whose gradients are right on every backend: matMul without broadcasting, select,
 * one additive bias and softmax. O(Nq Nk) time and memory.
 *
 * Letters: B batch, H heads, Nq and Nk lengths, r key dimension, d value dimension. Everything here is [B,H,N,.].
 */
import * as tf from '@tensorflow/tfjs-core';
import {isNonZero, offTape} from './conditions';
import {exponential} from './recomputed';
import {isHalfFloat, openTapes} from './tfjs';

export interface AttendOptions {
  /** Multiplies q.k before the softmax. */
  scale: number;
  /** Query i sees keys j <= i + Nk - Nq: with a cache, Nk - Nq tokens came before the first query. */
  causal: boolean;
  /** [B,Nk]; keeps where != 0. */
  mask?: tf.Tensor;
  /** Applied to the weights [B,H,Nq,Nk] before they meet the values: a layer's dropout. */
  onWeights?: (weights: tf.Tensor4D) => tf.Tensor4D;
}

/**
 * softmax(scale q k^T + bias) v, [B,H,Nq,d]. None of the sizes may be 0.
 *
 * Masked keys and values are selected to 0 first, so that nothing they hold, NaN included, reaches a product. Their
 * scores are then exactly 0 and the bias decides: `padded` for a masked key, `future` for a key that causality hides.
 * `future` is the lower of the two, so a query that sees masked keys only spreads its weight over those alone, whose
 * values are 0: its output and all its gradients are 0 without a special case.
 */
export function attend(
  q: tf.Tensor4D,
  k: tf.Tensor4D,
  v: tf.Tensor4D,
  {scale, causal, mask, onWeights}: AttendOptions,
): tf.Tensor4D {
  return tf.tidy(() => {
    const [B, H, Nq] = q.shape;
    const [Nk, d] = [k.shape[2], v.shape[3]];
    if (mask !== undefined) {
      const keep = isNonZero(tf.reshape(mask, [B, 1, Nk, 1]));
      k = tf.where(keep, k, 0);
      v = tf.where(keep, v, 0);
    }
    const bias = scoreBias(B, Nq, Nk, causal, mask);
    const scores = tf.matMul(evenSizes(tf.mul(q, scale)), evenSizes(k), false, true); // [B,H,Nq,Nk]
    let weights = softmax(bias === null ? scores : tf.add(scores, bias)) as tf.Tensor4D;
    if (onWeights !== undefined) {
      weights = onWeights(weights);
    }
    const output = tf.matMul(weights, evenSizes(v)) as tf.Tensor4D; // [B,H,Nq,d]
    return output.shape[2] === Nq && output.shape[3] === d
      ? output
      : tf.slice(output, [0, 0, 0, 0], [B, H, Nq, d]);
  });
}

/** Softmax over the last axis with gradients of any order: tfjs's own has the first only. */
function softmax(scores: tf.Tensor): tf.Tensor {
  if (openTapes() <= 1) {
    return tf.softmax(scores);
  }
  // A constant that is subtracted from a row changes nothing, so it needs no gradient.
  const highest = offTape(() => tf.max(scores, -1, true));
  const weights = exponential(tf.sub(scores, highest));
  return tf.div(weights, tf.sum(weights, -1, true));
}

/** What is added to the scores, [B or 1, 1, Nq or 1, Nk] with sizes made even where `evenSizes` does; null: nothing. */
function scoreBias(B: number, Nq: number, Nk: number, causal: boolean, mask?: tf.Tensor): tf.Tensor | null {
  const {padded, future} = fills();
  const [rows, columns] = needsEvenSizes() ? [even(Nq), even(Nk)] : [Nq, Nk];
  const column = tf.range(0, columns, 1, 'float32');
  let bias: tf.Tensor | null = null;
  if (mask !== undefined) {
    const dropped = tf.sub(1, tf.cast(isNonZero(mask), 'float32'));
    const wide =
      columns === Nk
        ? dropped
        : tf.pad(dropped as tf.Tensor2D, [
            [0, 0],
            [0, 1],
          ]);
    bias = tf.reshape(tf.mul(wide, padded), [B, 1, 1, columns]);
  }
  if (causal) {
    const last = tf.reshape(tf.range(Nk - Nq, Nk - Nq + rows, 1, 'float32'), [rows, 1]);
    const hidden = tf.mul(tf.cast(tf.greater(tf.reshape(column, [1, columns]), last), 'float32'), future);
    const causalBias = tf.reshape(hidden, [1, 1, rows, columns]);
    bias = bias === null ? causalBias : tf.minimum(bias, causalBias);
  }
  if (columns !== Nk) {
    const added = tf.mul(tf.cast(tf.greaterEqual(column, Nk), 'float32'), future);
    const addedBias = tf.reshape(added, [1, 1, 1, columns]);
    bias = bias === null ? addedBias : tf.minimum(bias, addedBias);
  }
  return bias;
}

/** What hides a key. tfjs's webgl maximum of a row starts at -1e20: a row of padding must stay above that. */
function fills(): {padded: number; future: number} {
  if (isHalfFloat()) {
    return {padded: -3e4, future: -6e4};
  }
  return {padded: tf.getBackend() === 'webgl' ? -1e19 : -1e38, future: -3e38};
}

const even = (n: number): number => n + (n % 2);

/**
 * tfjs's webgl matMul reads two elements per texel along the contracted axis, and the second of an odd last pair
 * holds whatever the op before left there. Forward and backward contract every one of r, d, Nq and Nk.
 */
const needsEvenSizes = (): boolean => tf.getBackend() === 'webgl';

function evenSizes(x: tf.Tensor4D): tf.Tensor4D {
  const [rows, columns] = [x.shape[2] % 2, x.shape[3] % 2];
  if (!needsEvenSizes() || rows + columns === 0) {
    return x;
  }
  return tf.pad(x, [
    [0, 0],
    [0, 0],
    [0, rows],
    [0, columns],
  ]);
}
