/** Rotary on the values of tfjs's cpu backend. */
import {type KernelConfig, type TensorInfo, util} from '@tensorflow/tfjs-core';
import {Rotary, rotaryAttrsOf, turn} from './rotary_kernels';
import {cpuTensor, cpuValues} from './tfjs';

export const rotaryCpu: KernelConfig = {
  kernelName: Rotary,
  backendName: 'cpu',
  kernelFunc: ({inputs, attrs, backend}) => {
    const x = inputs['x'] as TensorInfo;
    const to = new Float32Array(util.sizeFromShape(x.shape));
    turn(cpuValues(backend, x), to, x.shape, rotaryAttrsOf(attrs));
    return cpuTensor(backend, x.shape, to);
  },
};
