/** The composed form as kernels of a named backend. */
import * as tf from '@tensorflow/tfjs-core';
import {asTensor} from '../tfjs';
import {composedBackward, composedForward} from './composed';
import {
  asAttrs,
  asInputs,
  attrsOf,
  dimsOf,
  gradInputsOf,
  inputsOf,
  LinearAttention,
  LinearAttentionGrad,
  type Live,
} from './spec';
import {asSequence, type LinearAttentionStepAttrs, type LinearAttentionStepInputs} from './step';

/** The inputs as tensors. Where some may be bare infos: inside a tidy, see asTensor. */
export function live<T extends object>(inputs: T, backend: object): Live<T> {
  const entries = Object.entries(inputs as {[name: string]: tf.TensorInfo}).map(([name, x]) => [
    name,
    asTensor(backend, x),
  ]);
  return Object.fromEntries(entries) as Live<T>;
}

/** The configurations to register for `backendName`. */
export function composedKernels(backendName: string): tf.KernelConfig[] {
  return [
    {
      kernelName: LinearAttention,
      backendName,
      kernelFunc: ({inputs, attrs, backend}) =>
        tf.tidy(() => composedForward(live(inputsOf(inputs), backend as object), attrsOf(attrs))),
    },
    {
      kernelName: LinearAttentionGrad,
      backendName,
      kernelFunc: ({inputs, attrs, backend}) =>
        tf.tidy(() => {
          const all = live(gradInputsOf(inputs), backend as object);
          return composedBackward(all, all, attrsOf(attrs), all);
        }),
    },
  ];
}

/** LinearAttentionStep as a sequence of length 1, by a LinearAttention kernel function of `composedKernels`. */
export function composedStep(
  forward: tf.KernelFunc,
  stepInputs: LinearAttentionStepInputs,
  stepAttrs: LinearAttentionStepAttrs,
  backend: object,
): tf.TensorInfo[] {
  const {inputs, attrs} = asSequence(stepInputs, stepAttrs);
  const {B, H, d} = dimsOf(inputs, 'BHND');
  return tf.tidy(() => {
    const [output, s, z] = forward({inputs: asInputs(inputs), attrs: asAttrs(attrs), backend}) as tf.Tensor[];
    return [tf.reshape(output, [B, H, d]), s, z];
  });
}
