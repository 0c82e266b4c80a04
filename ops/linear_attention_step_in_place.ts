/** linearAttentionStep for a state that nobody needs any more as it was: a stream's. */
import * as tf from '@tensorflow/tfjs-core';
import {check, fail, show} from '../src/errors';
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
 * `linearAttentionStep` that takes `state` to the next token instead of returning a new one: afterwards state.s and state.z
 * are those after the token.
 *
 * On the wasm backend they are written where they lie, with a pointwise map and float32 tensors and without `mask` and
 * `positions`: nothing but the output is allocated, and a step takes three quarters of the time. Otherwise (on other
 * backends, under tf.grad, in debug mode, where a reshaped tensor shares their values) new tensors take their place, and the old ones
 * are disposed of. So read state.s and state.z anew after each call, and keep no other reference to them; `tf.clone` both
 * to go on from a state twice. They live as long as those that they replace: beyond a tf.tidy around the call, unless the
 * state was made in it.
 *
 * @param q [B,H,r]
 * @param k [B,H,r]
 * @param v [B,H,d]
 * @param state Two tensors, s [B,H,r',d] and z [B,H,r'], from `zeroState`, `returnState` or a step. Its properties are
 *   assigned to.
 * @param options Those of `linearAttentionStep`.
 * @returns output [B,H,d], the caller's.
 * @throws Error for wrong ranks, shapes, dtypes and options, and for a state that holds tf.Variables or cannot be
 *   assigned to. The state is as it was then.
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
  const {s, z} = (state ?? {}) as LinearAttentionState;
  check(
    isOwn(s) && isOwn(z),
    FN,
    () => `expected state to be {s, z}, two tensors that are no variables; got ${show(state)}.`,
  );
  const {output, state: next} =
    directStep(FN, q, k, v, state, options, runStepInPlace) ?? checkedStep(FN, q, k, v, state, options);
  if (next.s !== s) {
    // Both are new, then: what can go wrong comes before anything is disposed of.
    if (!Reflect.set(state, 's', next.s) || !Reflect.set(state, 'z', next.z)) {
      Reflect.set(state, 's', s);
      tf.dispose([output, next.s, next.z]);
      fail(FN, `expected state.s and state.z to be writable; got ${show(state)}, where they are not.`);
    }
    keepLike(s, next.s);
    keepLike(z, next.z);
    tf.dispose([s, z]);
  }
  return output;
}

const isOwn = (x: unknown): boolean => x instanceof Tensor && !(x instanceof Variable);
