/** LayerNorm and LayerNormGrad on the memory of tfjs's wasm backend; by SIMD where it is there. */
import type {KernelConfig, Tensor, TensorInfo} from '@tensorflow/tfjs-core';
import {wasmMemory, wasmOffset, wasmOutput, wasmView, withWasmScratch} from '../tfjs';
import {trainingExports} from '../wasm/training';
import {composedLayerNorm, composedLayerNormGrad} from './composed';
import {type LayerNormInputs, layerNormConfigs, sizeOf} from './configs';
import {layerNormGradRows, layerNormRows} from './plain';

function forwardWasm(backend: object, {x, gamma, beta}: LayerNormInputs, epsilon: number): TensorInfo {
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

function gradWasm(backend: object, {x, gamma, dy}: LayerNormInputs, epsilon: number): TensorInfo[] {
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

export const layerNormWasm: KernelConfig[] = layerNormConfigs('wasm', forwardWasm, gradWasm);
