/** What the layer normalization kernels of cpu and wasm share. */
import type {KernelConfig, NamedAttrMap, TensorInfo} from '@tensorflow/tfjs-core';
import {LayerNorm, LayerNormGrad} from './spec';

export type LayerNormInputs = {[name: string]: TensorInfo};

export const sizeOf = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

const epsilonOf = (attrs: NamedAttrMap | undefined): number => attrs?.['epsilon'] as number;

/** Both kernels of a backend, to be registered. */
export function layerNormConfigs(
  backendName: string,
  forward: (backend: object, inputs: LayerNormInputs, epsilon: number) => TensorInfo,
  grad: (backend: object, inputs: LayerNormInputs, epsilon: number) => TensorInfo[],
): KernelConfig[] {
  const configOf = (
    kernelName: string,
    run: (backend: object, inputs: LayerNormInputs, epsilon: number) => TensorInfo | TensorInfo[],
  ): KernelConfig => ({
    kernelName,
    backendName,
    kernelFunc: ({inputs, attrs, backend}) =>
      run(backend as object, inputs as LayerNormInputs, epsilonOf(attrs)),
  });
  return [configOf(LayerNorm, forward), configOf(LayerNormGrad, grad)];
}
