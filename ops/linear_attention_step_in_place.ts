/** linearAttentionStep for a state that nobody needs any more as it was: a stream's. */
import * as tf from '@tensorflow/tfjs-core';
import {check, show} from '../src/errors';
import {runStepInPlace} from '../src/linear_attention/step';
import {keepLike} from '../src/tfjs';
import type {Input} from './attention_shapes';
import {directStep} from './linear_attention_direct_step';
import {checkedStep, type LinearAttentionStepOptions} from './linear_attention_step';
import type {LinearAttentionState} from './state';

// The CommonJS build looks names of tfjs up at every use.
const {Tensor, Variable} = tf;

const FN = 'linearAttentionStepInPlace';

/**
 * `linearAttentionStep` that moves `state` on instead of returning a new one: afterwards state.s and state.z are those
 * after the token. On the wasm backend they are written where they lie: nothing but the output is allocated, and a step
 * takes three quarters of the time. Elsewhere, under tf.grad, in debug mode, and where another tensor shares their values (a
 * clone of the state keeps its own), new tensors take their place and the old ones are disposed of. So read state.s and
 * state.z after the call, and keep no other reference to them.
 *
 * The state stays the caller's: it outlives a tf.tidy around the call (unless it was made inside), until `disposeState`.
 *
 * @param q [B,H,r]
 * @param k [B,H,r]
 * @param v [B,H,d]
 * @param state Two tensors, s [B,H,r',d] and z [B,H,r'], from `zeroState`, `returnState` or a step; no tf.Variable.
 * @param options Those of `linearAttentionStep`.
 * @returns output [B,H,d], the caller's.
 * @throws Error for wrong ranks, shapes, dtypes and options, and for a state that cannot be moved on, before any work:
 *   the state is as it was then.
 *
 * ```js
 * const state = tfla.zeroState({batchSize: 1, numHeads: 2, keyDim: 8, valueDim: 16});
 * for (let i = 0; i < 3; i++) {
 *   tf.tidy(() => {
 *     const q = tf.randomNormal([1, 2, 8]);
 *     const k = tf.randomNormal([1, 2, 8]);
 *     const v = tf.randomNormal([1, 2, 16]);
 *     tfla.linearAttentionStepInPlace(q, k, v, state).print();
 *   });
 * }
 * tfla.disposeState(state);
 * ```
 */
export function linearAttentionStepInPlace(
  q: Input,
  k: Input,
  v: Input,
  state: LinearAttentionState,
  options?: LinearAttentionStepOptions,
): tf.Tensor3D {
  checkOwned(state);
  const {output, state: after} =
    directStep(FN, q, k, v, state, options, runStepInPlace) ?? checkedStep(FN, q, k, v, state, options);
  const {s, z} = state;
  if (after.s !== s) {
    replace(s, after.s, s);
    state.s = after.s;
  }
  if (after.z !== z) {
    replace(z, after.z, s);
    state.z = after.z;
  }
  return output;
}

/** `old` may be a z that was left out; `like` tells then how long the new one lives. */
function replace(old: tf.Tensor | undefined, fresh: tf.Tensor, like: tf.Tensor): void {
  keepLike(old ?? like, fresh);
  old?.dispose();
}

/** The state must be an object that can be written to, of tensors that may be disposed of. */
function checkOwned(state: LinearAttentionState): void {
  const {s, z} = (state ?? {}) as Partial<LinearAttentionState>;
  const right = isOwn(s) && (z === undefined || isOwn(z)) && !Object.isFrozen(state);
  check(
    right,
    FN,
    () => `expected state to be {s, z}, two tensors that are no variables, not frozen; got ${show(state)}.`,
  );
}

const isOwn = (x: unknown): boolean => x instanceof Tensor && !(x instanceof Variable);
