/** LinearAttentionStep on arrays of JavaScript's, for tfjs's cpu backend: a few heads at a time through SIMD's memory. */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {POINTWISE_MAPS} from '../pointwise';
import {cpuTensor, cpuValues} from '../tfjs';
import {forwardOfArrays} from './arrays';
import type {SimdExports} from './simd_arguments';
import {stagedSimd, stagingNumbers} from './simd_staged';
import {dimsOf} from './spec';
import {
  asSequence,
  LinearAttentionStep,
  type LinearAttentionStepAttrs,
  type LinearAttentionStepInputs,
  stepAttrsOf,
  stepInputsOf,
} from './step';

/** The arrays of a step: all have the heads of all batch entries one after the other. */
interface StepArrays {
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
  s: Float32Array;
  z: Float32Array;
}

/** Old and new states that are in memory together, in numbers: half a megabyte. */
const STATES = 1 << 17;

/** output, s and z of `count` heads. */
function stepInSimd(
  simd: SimdExports,
  x: StepArrays,
  [count, r, d]: number[],
  {featureMap, normalize, eps, scale}: LinearAttentionStepAttrs,
) {
  const result = {
    output: new Float32Array(count * d),
    s: new Float32Array(count * r * d),
    z: new Float32Array(count * r),
  };
  const heads = Math.min(count, Math.max(1, Math.floor(STATES / (2 * r * d))));
  const scratch = simd.stepScratch(r);
  const perHead = 2 * (r * d + r + d) + 2 * r;
  const memory = stagingNumbers(scratch + 4 * heads * perHead);
  for (let h = 0; h < count; h += heads) {
    const n = Math.min(heads, count - h);
    let at = scratch / 4;
    const place = (width: number) => {
      const start = at;
      at += n * width;
      return start;
    };
    const copied = (values: Float32Array, width: number) => {
      const start = place(width);
      memory.set(values.subarray(h * width, (h + n) * width), start);
      return start * 4;
    };
    const inputs = [copied(x.q, r), copied(x.k, r), copied(x.v, d), copied(x.s, r * d), copied(x.z, r)];
    const [output, s, z] = [place(d), place(r * d), place(r)];
    const map = POINTWISE_MAPS.indexOf(featureMap);
    const [q, k, v, s0, z0] = inputs;
    const flags = [n, r, d, map, normalize ? 1 : 0] as const;
    simd.step(q, k, v, s0, z0, output * 4, s * 4, z * 4, ...flags, eps, scale, 0);
    result.output.set(memory.subarray(output, output + n * d), h * d);
    result.s.set(memory.subarray(s, s + n * r * d), h * r * d);
    result.z.set(memory.subarray(z, z + n * r), h * r);
  }
  return result;
}

function run(backend: unknown, inputs: LinearAttentionStepInputs, attrs: LinearAttentionStepAttrs) {
  const values = (x: TensorInfo) => cpuValues(backend, x);
  const {q, k, v, s, z} = inputs;
  const arrays = {q: values(q), k: values(k), v: values(v), s: values(s), z: values(z)};
  const [B, H, r, d] = s.shape;
  const simd = stagedSimd();
  const sequence = asSequence(inputs, attrs);
  const result =
    simd === null
      ? forwardOfArrays({...arrays, mask: arrays.q}, dimsOf(sequence.inputs, 'BHND'), sequence.attrs)
      : stepInSimd(simd, arrays, [B * H, r, d], attrs);
  return [
    cpuTensor(backend, v.shape, result.output),
    cpuTensor(backend, s.shape, result.s),
    cpuTensor(backend, z.shape, result.z),
  ];
}

export const cpuStepKernel: KernelConfig = {
  kernelName: LinearAttentionStep,
  backendName: 'cpu',
  kernelFunc: ({inputs, attrs, backend}): TensorInfo[] =>
    run(backend, stepInputsOf(inputs), stepAttrsOf(attrs)),
};
