/** Rotary on the memory of tfjs's wasm backend. */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {composedRotary, Rotary, type RotaryAttrs, rotaryAttrsOf, tablesFor, turn} from './rotary_kernels';
import {wasmFloats, wasmMemory, wasmOffset, wasmOutput, wasmView, withWasmScratch} from './tfjs';
import {type TrainingExports, trainingExports} from './wasm/training';

export const rotaryWasm: KernelConfig = {
  kernelName: Rotary,
  backendName: 'wasm',
  kernelFunc: (args) => {
    const backend = args.backend as object;
    if (wasmMemory(backend) === null) {
      return composedRotary(args);
    }
    const x = args.inputs['x'] as TensorInfo;
    const attrs = rotaryAttrsOf(args.attrs);
    const output = wasmOutput(backend, x.shape);
    const simd = trainingExports(backend);
    if (simd !== null) {
      turnBySimd(simd, backend, x, output, attrs);
      return output;
    }
    const [from, to] = [x, output].map((info) => wasmView(backend, info) as Float32Array);
    turn(from, to, x.shape, attrs);
    return output;
  },
};

/** The tables, small beside x, are copied into scratch of the backend's memory. */
function turnBySimd(
  simd: TrainingExports,
  backend: object,
  x: TensorInfo,
  output: TensorInfo,
  attrs: RotaryAttrs,
): void {
  const [B, second, third, r] = x.shape;
  const {cos, sin} = tablesFor(x.shape, attrs);
  const lengthIsThird = attrs.dataFormat === 'BHND';
  const steps: [number, number, number] = [
    typeof attrs.positions === 'number' ? 0 : lengthIsThird ? third : second,
    lengthIsThird ? 0 : 1,
    lengthIsThird ? 1 : 0,
  ];
  withWasmScratch(backend, 8 * cos.length, (at) => {
    const tables = wasmFloats(backend, at, 2 * cos.length);
    tables.set(cos);
    tables.set(sin, cos.length);
    const [from, to] = [x, output].map((info) => wasmOffset(backend, info));
    const interleaved = attrs.pairing === 'interleaved';
    simd.rotary(
      B,
      second,
      third,
      r,
      ...steps,
      from,
      to,
      at,
      at + 4 * cos.length,
      attrs.back ? -1 : 1,
      interleaved,
    );
  });
}
