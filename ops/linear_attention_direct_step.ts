/** The short way of linearAttentionStep: see direct_options.ts. */
import type * as tf from '@tensorflow/tfjs-core';
import {type LinearAttentionStepAttrs, runStep, stepKernel} from '../src/linear_attention/step';
import {directOptions, isLive} from './direct_options';
import type {LinearAttentionState} from './state';

const DEFAULTS: LinearAttentionStepAttrs = {featureMap: 'elu', normalize: true, eps: 1e-6, scale: 1};

/**
 * The result, or null when the call is not float32 tensors of matching shapes with plain options. `run` is runStep or, where
 * the state is given up, runStepInPlace.
 */
export function directStep(
  fn: string,
  q: unknown,
  k: unknown,
  v: unknown,
  state: unknown,
  options: object | null | undefined,
  run: typeof runStep = runStep,
): {output: tf.Tensor3D; state: LinearAttentionState} | null {
  const {s: s0, z: z0} = (state ?? {}) as {s?: unknown; z?: unknown};
  if (!isLive(q, 3) || !isLive(k, 3) || !isLive(v, 3) || !isLive(s0, 4) || !isLive(z0, 3)) {
    return null;
  }
  const [B, H, r] = q.shape as number[];
  const [, , d] = v.shape as number[];
  if (
    !(B * H * r * d > 0) ||
    !has(k.shape, B, H, r) ||
    !has(v.shape, B, H, d) ||
    !has(s0.shape, B, H, r) ||
    s0.shape[3] !== d ||
    !has(z0.shape, B, H, r)
  ) {
    return null;
  }
  const attrs = options === undefined ? DEFAULTS : directOptions(fn, options, []);
  const kernel = stepKernel();
  if (attrs === null || kernel === undefined) {
    return null;
  }
  for (const key in state as object) {
    if (key !== 's' && key !== 'z') {
      return null;
    }
  }
  const [output, s, z] = run(kernel, {q, k, v, s: s0, z: z0}, attrs);
  return {output: output as tf.Tensor3D, state: {s: s as tf.Tensor4D, z: z as tf.Tensor3D}};
}

const has = (shape: number[], a: number, b: number, c: number): boolean =>
  shape[0] === a && shape[1] === b && shape[2] === c;
