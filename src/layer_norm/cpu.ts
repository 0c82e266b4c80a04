/** LayerNorm and LayerNormGrad on the values of tfjs's cpu backend. */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues} from '../tfjs';
import {type LayerNormInputs, layerNormConfigs, sizeOf} from './configs';
import {layerNormGradRows, layerNormRows} from './plain';

function forwardCpu(backend: object, {x, gamma, beta}: LayerNormInputs, epsilon: number): TensorInfo {
  const [xs, gammas, betas] = [x, gamma, beta].map((info) => cpuValues(backend, info));
  const y = new Float32Array(xs.length);
  layerNormRows(xs, gammas, betas, epsilon, y);
  return cpuTensor(backend, x.shape, y);
}

function gradCpu(backend: object, {x, gamma, dy}: LayerNormInputs, epsilon: number): TensorInfo[] {
  const [xs, gammas, dys] = [x, gamma, dy].map((info) => cpuValues(backend, info));
  const outputs = [x, gamma, gamma].map(({shape}) => ({shape, values: new Float32Array(sizeOf(shape))}));
  const [dx, dgamma, dbeta] = outputs.map(({values}) => values);
  layerNormGradRows(xs, gammas, dys, epsilon, dx, dgamma, dbeta);
  return outputs.map(({shape, values}) => cpuTensor(backend, shape, values));
}

export const layerNormCpu: KernelConfig[] = layerNormConfigs('cpu', forwardCpu, gradCpu);
