/**
 * One step of AdamW for one weight as a kernel, on cpu and wasm: AdamWStep({w, g, m, v}, rates) -> [w, m, v], new tensors.
 * In stock operations it is eleven passes over every weight.
 */
import * as tf from '@tensorflow/tfjs-core';

export const AdamWStep = 'AdamWStep';

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

/** By backend: whether its kernel can run there. */
const ready = new Map<string, () => boolean>();

/** Whether the active backend can run the step. */
export function hasAdamWKernel(): boolean {
  const backendName = tf.getBackend();
  return tf.getKernel(AdamWStep, backendName) != null && (ready.get(backendName)?.() ?? true);
}

/** The new [w, m, v]. */
export function runAdamW({w, g, m, v}: AdamWTensors, rates: AdamWRates): tf.Tensor[] {
  return tf.engine().runKernel(AdamWStep, {w, g, m, v}, rates) as tf.Tensor[];
}

/** The kernel of a backend, to be registered. `isReady` is asked before every step. */
export function adamWConfig(
  backendName: string,
  run: (backend: object, inputs: AdamWTensors<tf.TensorInfo>, rates: AdamWRates) => tf.TensorInfo[],
  isReady: () => boolean = () => true,
): tf.KernelConfig {
  ready.set(backendName, isReady);
  return {
    kernelName: AdamWStep,
    backendName,
    kernelFunc: ({inputs, attrs, backend}) =>
      run(
        backend as object,
        inputs as tf.NamedTensorInfoMap & AdamWTensors<tf.TensorInfo>,
        attrs as AdamWRates,
      ),
  };
}
