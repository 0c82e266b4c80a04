/** Gelu and GeluGrad on the cpu backend. */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues} from '../tfjs';
import {geluDerivative, geluScalar} from './scalar';
import {formOf, Gelu, GeluGrad} from './spec';

export const geluCpu: KernelConfig[] = [
  {
    kernelName: Gelu,
    backendName: 'cpu',
    kernelFunc: ({inputs, attrs, backend}) => {
      const {x} = inputs as {x: TensorInfo};
      const form = formOf(attrs ?? {});
      return cpuTensor(
        backend,
        x.shape,
        cpuValues(backend, x).map((value) => geluScalar(value, form)),
      );
    },
  },
  {
    kernelName: GeluGrad,
    backendName: 'cpu',
    kernelFunc: ({inputs, attrs, backend}) => {
      const {x, dy} = inputs as {x: TensorInfo; dy: TensorInfo};
      const form = formOf(attrs ?? {});
      const slopes = cpuValues(backend, dy);
      const dx = cpuValues(backend, x).map((value, i) => slopes[i] * geluDerivative(value, form));
      return cpuTensor(backend, x.shape, dx);
    },
  },
];
