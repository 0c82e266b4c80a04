/** The SIMD kernels on arrays of JavaScript's: through a memory of their own, about 1 MB whatever the length. */
import type {PlainGradients, PlainInputs, PlainOutputs} from './plain';
import {Arguments, planOf, type SimdExports} from './simd_arguments';
import {SimdAttention, STAGED_BACKWARD, STAGED_FORWARD} from './simd_attention';
import {simdOver} from './simd_module';
import {Staged} from './simd_storage';
import type {Dims, LinearAttentionAttrs} from './spec';

let memory: WebAssembly.Memory | undefined;
const PAGE = 65536;

/** Bytes of the kernels' own memory. */
export const stagingBytes = (): number => memory?.buffer.byteLength ?? 0;

type Arrays = ConstructorParameters<typeof Staged>[2];

/** The kernels' own memory, of at least `bytes` bytes. */
function reserve(bytes: number): WebAssembly.Memory {
  memory ??= new WebAssembly.Memory({initial: 1, maximum: PAGE});
  const missing = bytes - memory.buffer.byteLength;
  if (missing > 0) {
    memory.grow(Math.ceil(missing / PAGE));
  }
  return memory;
}

/** The SIMD module over the kernels' own memory, or null where it cannot run. */
export const stagedSimd = (): SimdExports | null => simdOver(reserve(PAGE));

/** The kernels' own memory as numbers, at least `bytes` bytes. */
export const stagingNumbers = (bytes: number): Float32Array => new Float32Array(reserve(bytes).buffer);

/** Sets up a call on `arrays`, or returns null where SIMD cannot run. */
function prepare(
  arrays: Arrays,
  dims: Dims,
  attrs: LinearAttentionAttrs,
  backward: boolean,
): SimdAttention | null {
  const simd = stagedSimd();
  if (simd === null) {
    return null;
  }
  const plan = planOf(dims, attrs, backward);
  const names = backward ? STAGED_BACKWARD : STAGED_FORWARD;
  const numbers = stagingNumbers(plan.bytes + 4 * Staged.size(names, plan.heads, plan.block, dims));
  const args = new Arguments(numbers.buffer, 0, plan, dims, attrs);
  const storage = new Staged(numbers, plan.bytes, arrays, dims, attrs.dataFormat);
  return new SimdAttention(simd, args, storage, dims, attrs);
}

/** output, s, z and inverse of spec.ts, or null where SIMD cannot run. */
export function stagedForward(x: PlainInputs, dims: Dims, attrs: LinearAttentionAttrs): PlainOutputs | null {
  const {B, H, Nq, r, d} = dims;
  const result = {
    output: new Float32Array(B * H * Nq * d),
    s: new Float32Array(attrs.returnState === false ? 1 : B * H * r * d),
    z: new Float32Array(attrs.returnState === false ? 1 : B * H * r),
    inverse: new Float32Array(attrs.normalize ? B * H * Nq : 1),
  };
  const {output, inverse} = result;
  const call = prepare({...x, output, inverse, sOut: result.s, zOut: result.z}, dims, attrs, false);
  call?.forward();
  return call && result;
}

/** The gradients of spec.ts, or null where SIMD cannot run. */
export function stagedBackward(
  x: PlainInputs,
  saved: {output: Float32Array; inverse: Float32Array},
  cotangents: {dOutput: Float32Array; dS: Float32Array; dZ: Float32Array},
  dims: Dims,
  attrs: LinearAttentionAttrs,
): PlainGradients | null {
  const {B, H, Nq, Nk, r, d} = dims;
  const result = {
    dq: new Float32Array(B * H * Nq * r),
    dk: new Float32Array(B * H * Nk * r),
    dv: new Float32Array(B * H * Nk * d),
    ds: new Float32Array(attrs.hasState ? B * H * r * d : 1),
    dz: new Float32Array(attrs.hasState ? B * H * r : 1),
  };
  const call = prepare({...x, ...saved, ...cotangents, ...result}, dims, attrs, true);
  call?.backward();
  return call && result;
}
