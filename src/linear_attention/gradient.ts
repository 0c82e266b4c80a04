/** The gradient of LinearAttention, of any order. */
import * as tf from '@tensorflow/tfjs-core';
import {isHigherOrder} from '../tfjs';
import {composedBackward} from './composed';
import {asAttrs, asInputs, attrsOf, LinearAttention, LinearAttentionGrad} from './spec';

const SAVED = ['q', 'k', 'v', 'mask', 's', 'z'] as const;

/**
 * First order runs the LinearAttentionGrad kernel. While an outer tape records, the composed backward is used
 * instead: it consists of differentiable ops, and computes the denominator again because what forward saved is
 * cut off from the tape.
 */
export const linearAttentionGradient: tf.GradConfig = {
  kernelName: LinearAttention,
  inputsToSave: [...SAVED],
  outputsToSave: [true, false, false, true, true],
  gradFunc: (dys, saved, namedAttrs) => {
    const attrs = attrsOf(namedAttrs);
    const [dOutput, dS, dZ] = dys as tf.Tensor[];
    const [q, k, v, mask, s, z, output, inverse] = saved;
    const inputs = {q, k, v, mask, s, z};
    // Not inside the functions below: tfjs runs each in a tidy of its own.
    const [dq, dk, dv, ds, dz] = isHigherOrder()
      ? composedBackward(inputs, {dOutput, dS, dZ}, attrs)
      : (tf
          .engine()
          .runKernel(
            LinearAttentionGrad,
            asInputs({...inputs, output, inverse, dOutput, dS, dZ}),
            asAttrs(attrs),
          ) as tf.Tensor[]);
    return {
      q: () => dq,
      k: () => dk,
      v: () => dv,
      mask: () => tf.zerosLike(mask),
      s: () => ds,
      z: () => dz,
    };
  },
};
