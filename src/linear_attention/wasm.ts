/**
 * The kernels of tfjs's wasm backend. They work in place on its memory; where that cannot be found they copy through
 * their own, and where there is no SIMD plain JavaScript does the work.
 */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {wasmMemory, wasmOffset, wasmOutput, wasmView, withWasmScratch} from '../tfjs';
import {backwardOfArrays, forwardOfArrays} from './arrays';
import {Arguments, planOf, type SimdExports} from './simd_arguments';
import {SimdAttention} from './simd_attention';
import {simdOver} from './simd_module';
import {InPlace} from './simd_storage';
import {
  attrsOf,
  type Dims,
  dimsOf,
  gradInputsOf,
  inputsOf,
  LinearAttention,
  type LinearAttentionAttrs,
  LinearAttentionGrad,
  type LinearAttentionGradInputs,
  type LinearAttentionInputs,
} from './spec';

/** The SIMD module over the backend's memory, or null where one of the two is missing. */
function simdOf(backend: object): {simd: SimdExports; memory: WebAssembly.Memory} | null {
  const memory = wasmMemory(backend);
  const simd = memory && simdOver(memory);
  return simd && memory && {simd, memory};
}

/** Runs f with a call on tensors of the backend; its outputs must have been made before. */
function inPlace(
  backend: object,
  {simd, memory}: {simd: SimdExports; memory: WebAssembly.Memory},
  tensors: {[name: string]: TensorInfo},
  dims: Dims,
  attrs: LinearAttentionAttrs,
  backward: boolean,
  f: (call: SimdAttention) => void,
): void {
  const plan = planOf(dims, attrs, backward);
  withWasmScratch(backend, plan.bytes + 64, (unaligned) => {
    // No vector of the states may lie across two cache lines.
    const at = Math.ceil(unaligned / 64) * 64;
    const addresses = Object.fromEntries(
      Object.entries(tensors).map(([name, info]) => [name, wasmOffset(backend, info)]),
    );
    const args = new Arguments(memory.buffer, at, plan, dims, attrs);
    f(new SimdAttention(simd, args, new InPlace(addresses, dims, attrs.dataFormat), dims, attrs));
  });
}

function makeAll(backend: object, shapes: {[name: string]: number[]}): {[name: string]: TensorInfo} {
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [name, wasmOutput(backend, shape)]),
  );
}

/** Copies arrays into new tensors; placeholders take the first number of what they stand for. */
function fill(
  backend: object,
  tensors: {[name: string]: TensorInfo},
  arrays: {[name: string]: Float32Array},
) {
  for (const [name, info] of Object.entries(tensors)) {
    wasmView(backend, info).set(info.shape.length === 1 ? arrays[name].subarray(0, 1) : arrays[name]);
  }
}

/** Copies, so that later allocations cannot detach them. */
function arraysOf<T extends LinearAttentionInputs>(backend: object, inputs: T) {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, info]) => [name, Float32Array.from(wasmView(backend, info))]),
  ) as {[K in keyof T]: Float32Array};
}

/** LinearAttention on tensors of the backend. */
export function wasmForward(
  backend: object,
  inputs: LinearAttentionInputs,
  attrs: LinearAttentionAttrs,
): TensorInfo[] {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const {B, H, r, d} = dims;
  const rows = inputs.q.shape.slice(0, 3);
  const shapes = {
    output: [...rows, d],
    s: attrs.returnState === false ? [1] : [B, H, r, d],
    z: attrs.returnState === false ? [1] : [B, H, r],
    inverse: attrs.normalize ? rows : [1],
  };
  const found = simdOf(backend);
  const result = makeAll(backend, shapes);
  const {output, s, z, inverse} = result;
  if (found !== null) {
    const tensors = {...inputs, output, inverse, sOut: s, zOut: z};
    inPlace(backend, found, tensors, dims, attrs, false, (call) => call.forward());
    for (const info of [s, z, inverse]) {
      if (info.shape.length === 1) {
        wasmView(backend, info).fill(0);
      }
    }
  } else {
    fill(backend, result, {...forwardOfArrays(arraysOf(backend, inputs), dims, attrs)});
  }
  return [output, s, z, inverse];
}

function backward(
  backend: object,
  inputs: LinearAttentionGradInputs,
  attrs: LinearAttentionAttrs,
): TensorInfo[] {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const {B, H, r, d} = dims;
  const shapes = {
    dq: inputs.q.shape,
    dk: inputs.k.shape,
    dv: inputs.v.shape,
    ds: attrs.hasState ? [B, H, r, d] : [1],
    dz: attrs.hasState ? [B, H, r] : [1],
  };
  const found = simdOf(backend);
  const result = makeAll(backend, shapes);
  if (found !== null) {
    inPlace(backend, found, {...inputs, ...result}, dims, attrs, true, (call) => call.backward());
    if (!attrs.hasState) {
      wasmView(backend, result.ds).fill(0);
      wasmView(backend, result.dz).fill(0);
    }
  } else {
    fill(backend, result, {...backwardOfArrays(arraysOf(backend, inputs), dims, attrs)});
  }
  return [result.dq, result.dk, result.dv, result.ds, result.dz];
}

/** For tfjs's wasm backend, under whatever name it is registered. */
export const wasmKernels: KernelConfig[] = [
  {
    kernelName: LinearAttention,
    backendName: 'wasm',
    kernelFunc: ({inputs, attrs, backend}) =>
      wasmForward(backend as object, inputsOf(inputs), attrsOf(attrs)),
  },
  {
    kernelName: LinearAttentionGrad,
    backendName: 'wasm',
    kernelFunc: ({inputs, attrs, backend}) =>
      backward(backend as object, gradInputsOf(inputs), attrsOf(attrs)),
  },
];
