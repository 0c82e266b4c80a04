/** AdamWStep on the memory of tfjs's wasm backend. */
import {backend as activeBackend, type KernelConfig, type TensorInfo, util} from '@tensorflow/tfjs-core';
import {wasmOffset, wasmOutput} from '../tfjs';
import {trainingExports} from '../wasm/training';
import {type AdamWRates, AdamWStep, type AdamWTensors, adamWConfig} from './spec';

function onWasm(backend: object, {w, g, m, v}: AdamWTensors<TensorInfo>, rates: AdamWRates) {
  const kernels = trainingExports(backend);
  if (kernels === null) {
    throw new Error(`${AdamWStep}: the wasm backend has no SIMD.`);
  }
  const outputs = [0, 1, 2].map(() => wasmOutput(backend, w.shape));
  const [atW, atG, atM, atV, w2, m2, v2] = [w, g, m, v, ...outputs].map((info) => wasmOffset(backend, info));
  const {beta1, beta2, epsilon, rate, keep} = rates;
  const rests = [1 - beta1, 1 - beta2];
  const size = util.sizeFromShape(w.shape);
  kernels.adamW(size, atW, atG, atM, atV, w2, m2, v2, beta1, rests[0], beta2, rests[1], epsilon, rate, keep);
  return outputs;
}

export const adamWWasm: KernelConfig = adamWConfig(
  'wasm',
  onWasm,
  () => trainingExports(activeBackend()) !== null,
);
