/** Gelu and GeluGrad on the wasm backend's own memory (src/wasm/assembly/gelu.ts). */
import {type KernelConfig, type Tensor, type TensorInfo, util} from '@tensorflow/tfjs-core';
import {wasmMemory, wasmOffset, wasmOutput, withWasmScratch} from '../tfjs';
import {geluWasm as bytes} from '../wasm/generated/gelu';
import {instantiate} from '../wasm/instance';
import {composedGelu, composedGeluGrad} from './composed';
import {formOf, Gelu, GeluGrad} from './spec';

interface GeluExports {
  geluScratch(): number;
  gelu(x: number, y: number, size: number, tanh: boolean, scratch: number): void;
  geluGrad(x: number, dy: number, dx: number, size: number, tanh: boolean, scratch: number): void;
}

function exportsFor(backend: object): GeluExports | null {
  const memory = wasmMemory(backend);
  return memory && instantiate<GeluExports>(bytes, memory);
}

export const geluWasm: KernelConfig[] = [
  {
    kernelName: Gelu,
    backendName: 'wasm',
    kernelFunc: ({inputs, attrs, backend}) => {
      const x = inputs['x'] as TensorInfo;
      const form = formOf(attrs ?? {});
      const kernels = exportsFor(backend as object);
      if (kernels === null) {
        return composedGelu(x as Tensor, form);
      }
      const y = wasmOutput(backend, x.shape);
      const size = util.sizeFromShape(x.shape);
      const at = (info: TensorInfo) => wasmOffset(backend, info);
      withWasmScratch(backend, kernels.geluScratch(), (scratch) => {
        kernels.gelu(at(x), at(y), size, form === 'tanh', scratch);
      });
      return y;
    },
  },
  {
    kernelName: GeluGrad,
    backendName: 'wasm',
    kernelFunc: ({inputs, attrs, backend}) => {
      const {x, dy} = inputs as {x: TensorInfo; dy: TensorInfo};
      const form = formOf(attrs ?? {});
      const kernels = exportsFor(backend as object);
      if (kernels === null) {
        return composedGeluGrad(x as Tensor, dy as Tensor, form);
      }
      const dx = wasmOutput(backend, x.shape);
      const at = (info: TensorInfo) => wasmOffset(backend, info);
      const size = util.sizeFromShape(x.shape);
      withWasmScratch(backend, kernels.geluScratch(), (scratch) => {
        kernels.geluGrad(at(x), at(dy), at(dx), size, form === 'tanh', scratch);
      });
      return dx;
    },
  },
];
