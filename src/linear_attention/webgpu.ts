/** The kernels of tfjs's webgpu backend; the composed form where nothing is there to compute, or this tfjs differs. */
import type {KernelConfig} from '@tensorflow/tfjs-core';
import {webgpuBackend} from '../tfjs';
import {composedKernels, composedStep} from './composed_kernels';
import {
  attrsOf,
  type Dims,
  dimsOf,
  gradInputsOf,
  inputsOf,
  LinearAttention,
  LinearAttentionGrad,
} from './spec';
import {LinearAttentionStep, stepAttrsOf, stepInputsOf} from './step';
import {webgpuBackward} from './webgpu/backward';
import {webgpuForward} from './webgpu/forward';
import {webgpuStep} from './webgpu/step';

const isEmpty = ({B, H, Nq, Nk, r, d}: Dims): boolean => B * H * Nq * Nk * r * d === 0;

const [composedForward, composedBackward] = composedKernels('webgpu');

export const webgpuKernels: KernelConfig[] = [
  {
    kernelName: LinearAttention,
    backendName: 'webgpu',
    kernelFunc: (call) => {
      const inputs = inputsOf(call.inputs);
      const attrs = attrsOf(call.attrs);
      const backend = webgpuBackend(call.backend);
      return backend === null || isEmpty(dimsOf(inputs, attrs.dataFormat))
        ? composedForward.kernelFunc(call)
        : webgpuForward(backend, inputs, attrs);
    },
  },
  {
    kernelName: LinearAttentionGrad,
    backendName: 'webgpu',
    kernelFunc: (call) => {
      const inputs = gradInputsOf(call.inputs);
      const attrs = attrsOf(call.attrs);
      const backend = webgpuBackend(call.backend);
      return backend === null || isEmpty(dimsOf(inputs, attrs.dataFormat))
        ? composedBackward.kernelFunc(call)
        : webgpuBackward(backend, inputs, attrs);
    },
  },
  {
    kernelName: LinearAttentionStep,
    backendName: 'webgpu',
    kernelFunc: (call) => {
      const inputs = stepInputsOf(call.inputs);
      const attrs = stepAttrsOf(call.attrs);
      const backend = webgpuBackend(call.backend);
      return backend === null
        ? composedStep(composedForward.kernelFunc, inputs, attrs, call.backend)
        : webgpuStep(backend, inputs, attrs);
    },
  },
];
