/** The kernels on arrays of JavaScript's: SIMD where it runs, else plain JavaScript. */
import {type PlainGradients, type PlainInputs, type PlainOutputs, plainBackward, plainForward} from './plain';
import {stagedBackward, stagedForward} from './simd_staged';
import type {Dims, LinearAttentionAttrs} from './spec';

/** output, s, z and inverse of spec.ts. */
export function forwardOfArrays(x: PlainInputs, dims: Dims, attrs: LinearAttentionAttrs): PlainOutputs {
  return stagedForward(x, dims, attrs) ?? plainForward(x, dims, attrs);
}

export interface GradientArrays extends PlainInputs {
  output: Float32Array;
  inverse: Float32Array;
  dOutput: Float32Array;
  dS: Float32Array;
  dZ: Float32Array;
}

/** The gradients of spec.ts. */
export function backwardOfArrays(x: GradientArrays, dims: Dims, attrs: LinearAttentionAttrs): PlainGradients {
  const {q, k, v, mask, s, z, output, inverse, dOutput, dS, dZ} = x;
  const inputs = {q, k, v, mask, s, z};
  const saved = {output, inverse};
  const staged = stagedBackward(inputs, saved, {dOutput, dS, dZ}, dims, attrs);
  if (staged !== null) {
    return staged;
  }
  const {B, H, r, d} = dims;
  const unread = attrs.returnState === false;
  const none = (size: number) => new Float32Array(size);
  const cotangents = {
    dOutput,
    dS: unread ? none(B * H * r * d) : dS,
    dZ: unread ? none(B * H * r) : dZ,
  };
  return plainBackward(inputs, saved, cotangents, dims, attrs);
}
