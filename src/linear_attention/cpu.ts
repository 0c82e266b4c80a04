/** The kernels of tfjs's cpu backend. */
import type {KernelConfig, TensorInfo} from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues} from '../tfjs';
import {backwardOfArrays, forwardOfArrays} from './arrays';
import type {PlainInputs} from './plain';
import {
  attrsOf,
  dimsOf,
  gradInputsOf,
  inputsOf,
  LinearAttention,
  LinearAttentionGrad,
  type LinearAttentionInputs,
} from './spec';

function plainInputs(backend: unknown, {q, k, v, mask, s, z}: LinearAttentionInputs): PlainInputs {
  const values = (x: TensorInfo) => cpuValues(backend, x);
  return {q: values(q), k: values(k), v: values(v), mask: values(mask), s: values(s), z: values(z)};
}

export const cpuKernels: KernelConfig[] = [
  {
    kernelName: LinearAttention,
    backendName: 'cpu',
    kernelFunc: ({inputs: named, attrs: namedAttrs, backend}) => {
      const inputs = inputsOf(named);
      const attrs = attrsOf(namedAttrs);
      const dims = dimsOf(inputs, attrs.dataFormat);
      const {B, H, r, d} = dims;
      const {output, s, z, inverse} = forwardOfArrays(plainInputs(backend, inputs), dims, attrs);
      return [
        cpuTensor(backend, [...inputs.q.shape.slice(0, 3), d], output),
        cpuTensor(backend, attrs.returnState === false ? [s.length] : [B, H, r, d], s),
        cpuTensor(backend, attrs.returnState === false ? [z.length] : [B, H, r], z),
        cpuTensor(backend, attrs.normalize ? inputs.q.shape.slice(0, 3) : [1], inverse),
      ];
    },
  },
  {
    kernelName: LinearAttentionGrad,
    backendName: 'cpu',
    kernelFunc: ({inputs: named, attrs: namedAttrs, backend}) => {
      const inputs = gradInputsOf(named);
      const attrs = attrsOf(namedAttrs);
      const dims = dimsOf(inputs, attrs.dataFormat);
      const values = (x: TensorInfo) => cpuValues(backend, x);
      const {dq, dk, dv, ds, dz} = backwardOfArrays(
        {
          ...plainInputs(backend, inputs),
          output: values(inputs.output),
          inverse: values(inputs.inverse),
          dOutput: values(inputs.dOutput),
          dS: values(inputs.dS),
          dZ: values(inputs.dZ),
        },
        dims,
        attrs,
      );
      return [
        cpuTensor(backend, inputs.q.shape, dq),
        cpuTensor(backend, inputs.k.shape, dk),
        cpuTensor(backend, inputs.v.shape, dv),
        cpuTensor(backend, attrs.hasState ? inputs.s.shape : [1], ds),
        cpuTensor(backend, attrs.hasState ? inputs.z.shape : [1], dz),
      ];
    },
  },
];
