/** LayerNorm and LayerNormGrad over the cpu and wasm backends' own arrays; by SIMD on wasm where it is there. */
import type {KernelConfig, NamedAttrMap, Tensor, TensorInfo} from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues, wasmMemory, wasmOffset, wasmOutput, wasmView, withWasmScratch} from '../tfjs';
import {trainingExports} from '../wasm/training';
import {composedLayerNorm, composedLayerNormGrad} from './composed';
import {layerNormGradRows, layerNormRows} from './plain';
import {LayerNorm, LayerNormGrad} from './spec';

type Inputs = {[name: string]: TensorInfo};

const epsilonOf = (attrs: NamedAttrMap | undefined): number => attrs?.['epsilon'] as number;

function forwardCpu(backend: object, {x, gamma, beta}: Inputs, epsilon: number): TensorInfo {
  const [xs, gammas, betas] = [x, gamma, beta].map((info) => cpuValues(backend, info));
  const y = new Float32Array(xs.length);
  layerNormRows(xs, gammas, betas, epsilon, y);
  return cpuTensor(backend, x.shape, y);
}

function gradCpu(backend: object, {x, gamma, dy}: Inputs, epsilon: number): TensorInfo[] {
  const [xs, gammas, dys] = [x, gamma, dy].map((info) => cpuValues(backend, info));
  const outputs = [x, gamma, gamma].map(({shape}) => ({shape, values: new Float32Array(sizeOf(shape))}));
  const [dx, dgamma, dbeta] = outputs.map(({values}) => values);
  layerNormGradRows(xs, gammas, dys, epsilon, dx, dgamma, dbeta);
  return outputs.map(({shape, values}) => cpuTensor(backend, shape, values));
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

function forwardWasm(backend: object, {x, gamma, beta}: Inputs, epsilon: number): TensorInfo {
  if (wasmMemory(backend) === null) {
    return composedLayerNorm(x as Tensor, gamma as Tensor, beta as Tensor, epsilon);
  }
  const y = wasmOutput(backend, x.shape);
  const simd = trainingExports(backend);
  if (simd !== null) {
    const at = (info: TensorInfo) => wasmOffset(backend, info);
    const size = sizeOf(gamma.shape);
    simd.layerNorm(sizeOf(x.shape) / size, size, at(x), at(gamma), at(beta), at(y), epsilon);
    return y;
  }
  const [xs, gammas, betas, ys] = views(backend, [x, gamma, beta, y]);
  layerNormRows(xs, gammas, betas, epsilon, ys);
  return y;
}

function gradWasm(backend: object, {x, gamma, dy}: Inputs, epsilon: number): TensorInfo[] {
  if (wasmMemory(backend) === null) {
    return composedLayerNormGrad(x as Tensor, gamma as Tensor, dy as Tensor, epsilon);
  }
  const outputs = [x, gamma, gamma].map(({shape}) => wasmOutput(backend, shape));
  const simd = trainingExports(backend);
  if (simd !== null) {
    const size = sizeOf(gamma.shape);
    withWasmScratch(backend, 8 * size, (scratch) => {
      const [atX, atGamma, atDy, dx, dGamma, dBeta] = [x, gamma, dy, ...outputs].map((info) =>
        wasmOffset(backend, info),
      );
      const rows = sizeOf(x.shape) / size;
      simd.layerNormGrad(rows, size, atX, atGamma, atDy, dx, dGamma, dBeta, epsilon, scratch);
    });
    return outputs;
  }
  const [xs, gammas, dys, dx, dgamma, dbeta] = views(backend, [x, gamma, dy, ...outputs]);
  layerNormGradRows(xs, gammas, dys, epsilon, dx, dgamma, dbeta);
  return outputs;
}

/** Taken after every allocation: growing memory detaches views. */
const views = (backend: object, infos: TensorInfo[]): Float32Array[] =>
  infos.map((info) => wasmView(backend, info) as Float32Array);

/** What to register, by backend. */
export const layerNormKernels: {[backendName: string]: KernelConfig[]} = Object.fromEntries(
  (
    [
      ['cpu', forwardCpu, gradCpu],
      ['wasm', forwardWasm, gradWasm],
    ] as const
  ).map(([backendName, forward, grad]): [string, KernelConfig[]] => [
    backendName,
    [
      {
        kernelName: LayerNorm,
        backendName,
        kernelFunc: ({inputs, attrs, backend}) =>
          forward(backend as object, inputs as Inputs, epsilonOf(attrs)),
      },
      {
        kernelName: LayerNormGrad,
        backendName,
        kernelFunc: ({inputs, attrs, backend}) => grad(backend as object, inputs as Inputs, epsilonOf(attrs)),
      },
    ],
  ]),
);
