/** Linear attention, one token at a time. */
import * as tf from '@tensorflow/tfjs-core';
import {toFloat} from '../src/convert';
import {check, checkBoolean, checkOptions} from '../src/errors';
import {checkStepShapes, type Input} from './attention_shapes';
import {
  type Call,
  checkMask,
  checkPositions,
  checkShared,
  checkState,
  type InitialState,
  runCall,
  type SharedOptions,
} from './linear_attention_call';
import {directStep} from './linear_attention_direct_step';
import type {LinearAttentionState} from './state';

/** Options of `linearAttentionStep`. */
export interface LinearAttentionStepOptions extends SharedOptions {
  /** [B]; where it is 0 the state keeps its values. Not differentiated. */
  mask?: Input;
  /** Position of the token, for maps that need positions. Default 0. */
  offset?: number;
  /** Position of each row's token, [B], instead of `offset`. */
  positions?: Int32Array;
}

const FN = 'linearAttentionStep';
const OPTIONS = [
  'featureMap',
  'normalize',
  'eps',
  'scale',
  'mask',
  'offset',
  'positions',
  'featureMapWeights',
];

/**
 * One token of causal linear attention. Time and memory do not depend on how many tokens came before:
 *
 *     s' = s + phi(k) v^T    z' = z + phi(k)    output = phi(q)^T s' / (phi(q).z' + eps)
 *
 * (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236, section 3.4). The given state keeps its values, so it
 * can be continued in several ways; the caller disposes it when it is done with it.
 *
 * @param q [B,H,r]
 * @param k [B,H,r]
 * @param v [B,H,d]
 * @param state From `zeroState`, from linearAttention's `returnState`, or from the step before.
 * @returns {output [B,H,d], state}, the caller's.
 * @throws Error for wrong ranks, shapes, dtypes and options, before any work.
 *
 * ```js
 * let state = tfla.zeroState({batchSize: 1, numHeads: 2, keyDim: 8, valueDim: 16});
 * for (let i = 0; i < 3; i++) {
 *   const q = tf.randomNormal([1, 2, 8]);
 *   const k = tf.randomNormal([1, 2, 8]);
 *   const v = tf.randomNormal([1, 2, 16]);
 *   const next = tfla.linearAttentionStep(q, k, v, state);
 *   tf.dispose([q, k, v, next.output]);
 *   tfla.disposeState(state);
 *   state = next.state;
 * }
 * ```
 */
export function linearAttentionStep(
  q: Input,
  k: Input,
  v: Input,
  state: InitialState,
  options?: LinearAttentionStepOptions,
): {output: tf.Tensor3D; state: LinearAttentionState} {
  return directStep(FN, q, k, v, state, options) ?? checkedStep(FN, q, k, v, state, options);
}

/** The long way, with an error for everything that is wrong. `fn` is the function to name in it. */
export function checkedStep(
  fn: string,
  q: Input,
  k: Input,
  v: Input,
  state: InitialState,
  options: LinearAttentionStepOptions = {},
): {output: tf.Tensor3D; state: LinearAttentionState} {
  checkOptions(fn, options, OPTIONS);
  const {normalize = true, offset = 0} = options;
  checkBoolean(fn, 'normalize', normalize);
  const sizes = checkStepShapes(fn, q, k, v);
  checkPositions(fn, offset, options.positions, sizes);
  const shared = checkShared(fn, options, sizes);
  check(
    shared.map.causal !== false,
    fn,
    () => `feature map '${shared.map.name}' looks at the whole sequence and cannot be used step by step.`,
  );
  checkMask(fn, options.mask, [sizes.B], '[B]');
  checkState(fn, 'state', state, shared.map, sizes, normalize);

  const [output, s, z] = tf.tidy(() => {
    const call: Call = {
      ...shared,
      fn,
      sizes,
      causal: true,
      normalize,
      dataFormat: 'BHND',
      offset,
      positions: options.positions,
      mask: options.mask === undefined ? undefined : tf.reshape(toFloat(options.mask), [sizes.B, 1]),
      state,
    };
    const [queries, keys, values] = [q, k, v].map((x) => tf.expandDims(toFloat(x), 2));
    const result = runCall(call, queries, keys, values);
    return [tf.squeeze(result.output, [2]), result.s, result.z];
  });
  return {output: output as tf.Tensor3D, state: {s: s as tf.Tensor4D, z: z as tf.Tensor3D}};
}
