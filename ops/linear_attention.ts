/** Linear attention over whole sequences. */
import * as tf from '@tensorflow/tfjs-core';
import {toFloat} from '../src/convert';
import {check, checkBoolean, checkOneOf, checkOptions} from '../src/errors';
import type {DataFormat} from '../src/linear_attention/spec';
import {checkAttentionShapes, type Input} from './attention_shapes';
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
import {directAttention} from './linear_attention_direct';
import type {LinearAttentionState} from './state';

/** Options of `linearAttention`. */
export interface LinearAttentionOptions extends SharedOptions {
  /** Each query sees the keys up to its own position, inclusive; needs Nq = Nk. Default false: all keys. */
  causal?: boolean;
  /** [B,Nk]; keys where it is not 0 are kept, whatever the others hold. Not differentiated. */
  mask?: Input;
  /** State to start from, as `returnState` gave it; causal or not. */
  initialState?: InitialState;
  /** Return {output, state} instead of the output. Default false. */
  returnState?: boolean;
  /** Layout of q, k, v and output: 'BHND' (default) is [B,H,N,.], 'BNHD' is [B,N,H,.]. State and mask keep theirs. */
  dataFormat?: DataFormat;
  /** Position of the first token, for maps that need positions. Default 0. */
  offset?: number;
  /** Position of every token, [B*N] batch row by batch row, instead of `offset`. Needs Nq = Nk. */
  positions?: Int32Array;
}

/** What `linearAttention` returns with `returnState`; both are the caller's to dispose. */
export type OutputAndState = {
  output: tf.Tensor;
  state: LinearAttentionState;
};

const OPTIONS = [
  'causal',
  'featureMap',
  'normalize',
  'eps',
  'mask',
  'initialState',
  'returnState',
  'dataFormat',
  'scale',
  'featureMapWeights',
  'offset',
  'positions',
];

/**
 * Linear attention (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236, section 3):
 *
 *     s = bhnr,bhnd->bhrd (phi(k), v)    z = bhnr->bhr (phi(k))
 *     output = bhnr,bhrd->bhnd (phi(q), s) / (bhnr,bhr->bhn (phi(q), z) + eps)
 *
 * summed over all keys or, when `causal`, over those up to the query's own position. Time and memory grow with N, not
 * with N^2. A denominator of 0 gives output 0 with gradient 0.
 *
 * @param q [B,H,Nq,r], or [B,Nq,r] for one head; int32, bool and nested arrays are cast to float32.
 * @param k [B,H,Nk,r], of q's rank.
 * @param v [B,H,Nk,d], of q's rank.
 * @returns Output [B,H,Nq,d] (or [B,Nq,d]); with `returnState` {output, state}. The caller disposes them.
 * @throws Error for wrong ranks, shapes, dtypes and options, before any work.
 *
 * ```js
 * const q = tf.randomNormal([1, 2, 5, 8]);
 * const k = tf.randomNormal([1, 2, 5, 8]);
 * const v = tf.randomNormal([1, 2, 5, 16]);
 * const {output, state} = tfla.linearAttention(q, k, v, {causal: true, returnState: true});
 * console.log(output.shape, state.s.shape, state.z.shape); // [1, 2, 5, 16] [1, 2, 8, 16] [1, 2, 8]
 * ```
 */
export function linearAttention(
  q: Input,
  k: Input,
  v: Input,
  options: LinearAttentionOptions & {returnState: true},
): OutputAndState;
export function linearAttention(
  q: Input,
  k: Input,
  v: Input,
  options?: LinearAttentionOptions & {returnState?: false},
): tf.Tensor;
export function linearAttention(
  q: Input,
  k: Input,
  v: Input,
  options: LinearAttentionOptions = {},
): tf.Tensor | OutputAndState {
  const direct = directAttention(q, k, v, options);
  if (direct !== null) {
    return direct.state === null ? direct.output : {output: direct.output, state: direct.state};
  }
  const fn = 'linearAttention';
  checkOptions(fn, options, OPTIONS);
  const {causal = false, normalize = true, returnState = false, dataFormat = 'BHND', offset = 0} = options;
  checkBoolean(fn, 'causal', causal);
  checkBoolean(fn, 'normalize', normalize);
  checkBoolean(fn, 'returnState', returnState);
  checkOneOf(fn, 'dataFormat', dataFormat, ['BHND', 'BNHD']);
  const sizes = checkAttentionShapes(fn, q, k, v, dataFormat, causal);
  checkPositions(fn, offset, options.positions, sizes);
  const shared = checkShared(fn, options, sizes);
  check(
    !causal || shared.map.causal !== false,
    fn,
    () =>
      `feature map '${shared.map.name}' looks at the whole sequence and cannot be causal; got causal = true.`,
  );
  checkMask(fn, options.mask, [sizes.B, sizes.Nk], '[B,Nk]');
  if (options.initialState !== undefined) {
    checkState(fn, 'initialState', options.initialState, shared.map, sizes, normalize);
  }
  const call: Call = {
    ...shared,
    fn,
    sizes,
    causal,
    normalize,
    dataFormat,
    offset,
    positions: options.positions,
    mask: options.mask,
    state: options.initialState,
    returnState,
  };

  const [output, s, z] = tf.tidy(() => {
    const headAxis = dataFormat === 'BHND' ? 1 : 2;
    const withHead = (x: Input) => (sizes.oneHead ? tf.expandDims(toFloat(x), headAxis) : toFloat(x));
    const result = runCall(call, withHead(q), withHead(k), withHead(v));
    const output = sizes.oneHead ? tf.squeeze(result.output, [headAxis]) : result.output;
    return returnState ? [output, result.s, result.z] : [output];
  });
  return returnState ? {output, state: {s: s as tf.Tensor4D, z: z as tf.Tensor3D}} : output;
}
