/** The rotary kernel on the cpu and wasm backends: one pass, by SIMD on wasm where it is there. */
import {
  type KernelConfig,
  type NamedAttrMap,
  type NamedTensorInfoMap,
  type TensorInfo,
  util,
} from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues, wasmMemory, wasmOffset, wasmOutput} from '../tfjs';
import {type TrainingExports, trainingExports} from '../wasm/training';
import {composedRotate} from './composed';
import {Rotate} from './spec';

interface Inputs {
  x: TensorInfo;
  cos: TensorInfo;
  sin: TensorInfo;
}

type Values = Record<keyof Inputs | 'y', Float32Array>;

function turn({x, cos, sin, y}: Values, {x: {shape}, cos: table}: Inputs, attrs: NamedAttrMap): void {
  const [B, first, second, r] = shape;
  const headsFirst = attrs['dataFormat'] === 'BHND';
  const N = headsFirst ? second : first;
  const [step, apart] = attrs['pairing'] === 'half' ? [1, r / 2] : [2, 1];
  const rowSize = table.shape[0] === 1 ? 0 : N * r;
  let at = 0;
  for (let b = 0; b < B; b++) {
    for (let i = 0; i < first; i++) {
      for (let j = 0; j < second; j++, at += r) {
        const token = b * rowSize + (headsFirst ? j : i) * r;
        for (let pair = 0; pair < r / 2; pair++) {
          const one = pair * step;
          const other = one + apart;
          y[at + one] = x[at + one] * cos[token + one] + x[at + other] * sin[token + one];
          y[at + other] = x[at + other] * cos[token + other] + x[at + one] * sin[token + other];
        }
      }
    }
  }
}

function turnBySimd(
  simd: TrainingExports,
  backend: object,
  {x, cos, sin}: Inputs,
  y: TensorInfo,
  attrs: NamedAttrMap,
): void {
  const [B, first, second, r] = x.shape;
  const headsFirst = attrs['dataFormat'] === 'BHND';
  const batchStep = cos.shape[0] === 1 ? 0 : headsFirst ? second : first;
  const steps: [number, number] = headsFirst ? [0, 1] : [1, 0];
  const [atX, atY, atCos, atSin] = [x, y, cos, sin].map((info) => wasmOffset(backend, info));
  const interleaved = attrs['pairing'] === 'interleaved';
  simd.rotary(B, first, second, r, batchStep, ...steps, atX, atY, atCos, atSin, interleaved);
}

export const rotateKernels: {[backend: string]: KernelConfig[]} = {
  cpu: [
    {
      kernelName: Rotate,
      backendName: 'cpu',
      kernelFunc: ({inputs, attrs, backend}) => {
        const given = inputs as NamedTensorInfoMap & Inputs;
        const [x, cos, sin] = [given.x, given.cos, given.sin].map((info) => cpuValues(backend, info));
        const y = new Float32Array(x.length);
        turn({x, cos, sin, y}, given, attrs ?? {});
        return cpuTensor(backend, given.x.shape, y);
      },
    },
  ],
  wasm: [
    {
      kernelName: Rotate,
      backendName: 'wasm',
      kernelFunc: ({inputs, attrs, backend}) => {
        const given = inputs as NamedTensorInfoMap & Inputs;
        const memory = wasmMemory(backend as object);
        if (memory === null) {
          return composedRotate(given, attrs ?? {});
        }
        const output = wasmOutput(backend, given.x.shape);
        const simd = trainingExports(backend as object);
        if (simd !== null) {
          turnBySimd(simd, backend as object, given, output, attrs ?? {});
          return output;
        }
        // After the allocation, which may move the memory.
        const [x, cos, sin, y] = [given.x, given.cos, given.sin, output].map(
          (info) =>
            new Float32Array(memory.buffer, wasmOffset(backend, info), util.sizeFromShape(info.shape)),
        );
        turn({x, cos, sin, y}, given, attrs ?? {});
        return output;
      },
    },
  ],
};
