/** The short way of linearAttention: see direct_options.ts. */
import * as tf from '@tensorflow/tfjs-core';
import {dimsOf, LinearAttention} from '../src/linear_attention/spec';
import {kernelLookup, openTapes, runKernel} from '../src/tfjs';
import {directOptions, isLive} from './direct_options';
import type {LinearAttentionState} from './state';

const attentionKernel = kernelLookup(LinearAttention);
const OTHERS = ['causal', 'dataFormat', 'returnState'];

/** Output, and the state if that is asked for; or null when the call has a mask, a state or anything unusual. */
export function directAttention(
  q: unknown,
  k: unknown,
  v: unknown,
  options: object | null,
): {output: tf.Tensor; state: LinearAttentionState | null} | null {
  if (!isLive(q, 4) || !isLive(k, 4) || !isLive(v, 4)) {
    return null;
  }
  const given = options as {[name: string]: unknown} | null;
  const {causal = false, dataFormat = 'BHND', returnState = false} = given ?? {};
  if (
    typeof causal !== 'boolean' ||
    typeof returnState !== 'boolean' ||
    (dataFormat !== 'BHND' && dataFormat !== 'BNHD')
  ) {
    return null;
  }
  const shared = directOptions('linearAttention', given, OTHERS);
  const {B, H, Nq, Nk, r, d} = dimsOf({q, k, v}, dataFormat);
  const [head, length] = dataFormat === 'BHND' ? [1, 2] : [2, 1];
  const kernel = attentionKernel();
  const sameHeads = k.shape[head] === H && v.shape[head] === H;
  const sameBatch = k.shape[0] === B && v.shape[0] === B;
  if (
    shared === null ||
    !(B * H * Nq * Nk * r * d > 0 && sameHeads && sameBatch && k.shape[3] === r && v.shape[length] === Nk) ||
    (causal && Nq !== Nk) ||
    kernel === undefined
  ) {
    return null;
  }
  const attrs = {
    updateRule: 'linear' as const,
    causal,
    ...shared,
    dataFormat,
    hasMask: false,
    hasState: false,
    returnState,
  } as const;
  // What is absent needs a placeholder, and while a tape records it needs one whose gradient may have one element.
  const none = openTapes() === 0 ? q : tf.zeros([1]);
  const inputs = {q, k, v, mask: none, s: none, z: none};
  const [output, s, z, inverse] = runKernel(kernel, inputs, attrs);
  inverse.dispose();
  if (none !== q) {
    none.dispose();
  }
  if (returnState) {
    return {output, state: {s: s as tf.Tensor4D, z: z as tf.Tensor3D}};
  }
  s.dispose();
  z.dispose();
  return {output, state: null};
}
