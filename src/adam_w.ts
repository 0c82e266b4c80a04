/**
 * One step of AdamW for one weight as a kernel, on cpu and wasm: AdamWStep({w, g, m, v}, rates) -> [w, m, v], new tensors.
 * In stock operations it is eleven passes over every weight.
 */
import * as tf from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues, wasmOffset, wasmOutput} from './tfjs';
import {trainingExports} from './wasm/training';

const AdamWStep = 'AdamWStep';

/** w2 = keep w - rate m2 / (sqrt(v2) + epsilon); m2 = beta1 m + (1 - beta1) g; v2 = beta2 v + (1 - beta2) g^2. */
export interface AdamWRates {
  [name: string]: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  rate: number;
  keep: number;
}

export interface AdamWTensors<T extends tf.TensorInfo = tf.Tensor> {
  w: T;
  g: T;
  m: T;
  v: T;
}

/** Whether the active backend can run the step. */
export function hasAdamWKernel(): boolean {
  const backendName = tf.getBackend();
  const registered = tf.getKernel(AdamWStep, backendName) != null;
  return registered && (backendName !== 'wasm' || trainingExports(tf.backend()) !== null);
}

/** The new [w, m, v]. */
export function runAdamW({w, g, m, v}: AdamWTensors, rates: AdamWRates): tf.Tensor[] {
  return tf.engine().runKernel(AdamWStep, {w, g, m, v}, rates) as tf.Tensor[];
}

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

function onCpu(backend: object, {w, g, m, v}: AdamWTensors<tf.TensorInfo>, rates: AdamWRates) {
  const from = [w, g, m, v].map((info) => cpuValues(backend, info)) as Arrays;
  const to = [0, 1, 2].map(() => new Float32Array(from[0].length));
  step(from, to, rates);
  return to.map((values) => cpuTensor(backend, w.shape, values));
}

function onWasm(backend: object, {w, g, m, v}: AdamWTensors<tf.TensorInfo>, rates: AdamWRates) {
  const kernels = trainingExports(backend);
  if (kernels === null) {
    throw new Error(`${AdamWStep}: the wasm backend has no SIMD.`);
  }
  const outputs = [0, 1, 2].map(() => wasmOutput(backend, w.shape));
  const [atW, atG, atM, atV, w2, m2, v2] = [w, g, m, v, ...outputs].map((info) => wasmOffset(backend, info));
  const {beta1, beta2, epsilon, rate, keep} = rates;
  const rests = [1 - beta1, 1 - beta2];
  const size = tf.util.sizeFromShape(w.shape);
  kernels.adamW(size, atW, atG, atM, atV, w2, m2, v2, beta1, rests[0], beta2, rests[1], epsilon, rate, keep);
  return outputs;
}

export const adamWKernels: {[backendName: string]: tf.KernelConfig[]} = Object.fromEntries(
  Object.entries({cpu: onCpu, wasm: onWasm}).map(([backendName, run]) => [
    backendName,
    [
      {
        kernelName: AdamWStep,
        backendName,
        kernelFunc: ({inputs, attrs, backend}) =>
          run(
            backend as object,
            inputs as tf.NamedTensorInfoMap & AdamWTensors<tf.TensorInfo>,
            attrs as AdamWRates,
          ),
      },
    ],
  ]),
);
