/** AdamWStep on the values of tfjs's cpu backend. */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues} from '../tfjs';
import {type AdamWRates, type AdamWTensors, adamWConfig} from './spec';

/** Float32Arrays, in the order w, g, m, v, then the results. */
type Arrays = [Float32Array, Float32Array, Float32Array, Float32Array];

function step(from: Arrays, to: Float32Array[], {beta1, beta2, epsilon, rate, keep}: AdamWRates): void {
  const [w, g, m, v] = from;
  const [w2, m2, v2] = to;
  for (let i = 0; i < w.length; i++) {
    m2[i] = beta1 * m[i] + (1 - beta1) * g[i];
    v2[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
    w2[i] = keep * w[i] - (rate * m2[i]) / (Math.sqrt(v2[i]) + epsilon);
  }
}

function onCpu(backend: object, {w, g, m, v}: AdamWTensors<TensorInfo>, rates: AdamWRates) {
  const from = [w, g, m, v].map((info) => cpuValues(backend, info)) as Arrays;
  const to = [0, 1, 2].map(() => new Float32Array(from[0].length));
  step(from, to, rates);
  return to.map((values) => cpuTensor(backend, w.shape, values));
}

export const adamWCpu: KernelConfig = adamWConfig('cpu', onCpu);
