/** LinearAttentionStep on the memory of tfjs's wasm backend. */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {POINTWISE_MAPS} from '../pointwise';
import {
  disposeInfo,
  isWasmOwner,
  keptWasmScratch,
  wasmAlignedOutput,
  wasmMemory,
  wasmOffset,
  wasmOutput,
  wasmOverwritten,
} from '../tfjs';
import {simdOver} from './simd_module';
import {
  asSequence,
  LinearAttentionStep,
  type LinearAttentionStepAttrs,
  type LinearAttentionStepInputs,
  stepAttrsOf,
  stepInputsOf,
} from './step';
import {wasmForward} from './wasm';

/** `s` itself, or a new place for it, once, where its own would let vectors cross the ends of cache lines. */
function aligned(backend: object, s: TensorInfo): TensorInfo {
  if (wasmOffset(backend, s) % 16 === 0) {
    return s;
  }
  const moved = wasmAlignedOutput(backend, s.shape);
  if (wasmOffset(backend, moved) % 16 === 0) {
    return moved;
  }
  disposeInfo(backend, moved);
  return s;
}

function run(backend: object, inputs: LinearAttentionStepInputs, attrs: LinearAttentionStepAttrs) {
  const memory = wasmMemory(backend);
  const simd = memory && simdOver(memory);
  if (!simd) {
    const sequence = asSequence(inputs, attrs);
    const [output, newS, newZ, inverse] = wasmForward(backend, sequence.inputs, sequence.attrs);
    disposeInfo(backend, inverse);
    return [{...output, shape: inputs.v.shape}, newS, newZ];
  }
  const {q, k, v, s, z} = inputs;
  const [B, H, r, d] = s.shape;
  const own = attrs.inPlace === true && isWasmOwner(backend, s) && isWasmOwner(backend, z);
  const newS = own ? aligned(backend, s) : wasmAlignedOutput(backend, s.shape);
  const output = wasmOutput(backend, v.shape);
  const newZ = newS === s ? z : wasmOutput(backend, z.shape);
  // Kept between calls: allocating it would take longer than using it.
  const scratch = keptWasmScratch(backend, simd.stepScratch(r));
  simd.step(
    wasmOffset(backend, q),
    wasmOffset(backend, k),
    wasmOffset(backend, v),
    wasmOffset(backend, s),
    wasmOffset(backend, z),
    wasmOffset(backend, output),
    wasmOffset(backend, newS),
    wasmOffset(backend, newZ),
    B * H,
    r,
    d,
    POINTWISE_MAPS.indexOf(attrs.featureMap),
    attrs.normalize ? 1 : 0,
    attrs.eps,
    attrs.scale,
    scratch,
  );
  if (newS === s) {
    wasmOverwritten(backend, s, B * H * r * d);
    wasmOverwritten(backend, z, B * H * r);
  }
  return [output, newS, newZ];
}

export const wasmStepKernel: KernelConfig = {
  kernelName: LinearAttentionStep,
  backendName: 'wasm',
  kernelFunc: ({inputs, attrs, backend}): TensorInfo[] =>
    run(backend as object, stepInputsOf(inputs), stepAttrsOf(attrs)),
};
