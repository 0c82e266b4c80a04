/**
 * One token of causal attention as a kernel of its own, for backends where a call's fixed costs would show: q, k [B,H,r],
 * v [B,H,d], s [B,H,r,d], z [B,H,r] to output [B,H,d] and the new s and z. No mask; every input is a float32 tensor.
 * Backends without it run the step as a sequence of length 1.
 */
import * as tf from '@tensorflow/tfjs-core';
import type {PointwiseMap} from '../pointwise';
import {isUnwatched, kernelLookup, runKernel, runUnwatched} from '../tfjs';
import {linearAttentionGradient} from './gradient';
import {
  asAttrs,
  asInputs,
  LinearAttention,
  type LinearAttentionAttrs,
  type LinearAttentionInputs,
} from './spec';

export const LinearAttentionStep = 'LinearAttentionStep';

export interface LinearAttentionStepAttrs {
  featureMap: PointwiseMap;
  normalize: boolean;
  eps: number;
  scale: number;
  /**
   * The kernel may write the new s and z where the given ones are, both or none, where no other tensor shares their values.
   * It hands back the objects that it was given.
   */
  inPlace?: boolean;
}

export interface LinearAttentionStepInputs<T extends tf.TensorInfo = tf.TensorInfo> {
  q: T;
  k: T;
  v: T;
  s: T;
  z: T;
}

/** The active backend's kernel, or undefined where it has none. */
export const stepKernel = kernelLookup(LinearAttentionStep);

/** Runs the kernel. The three tensors are the caller's. */
export const runStep = (
  kernel: tf.KernelConfig,
  inputs: LinearAttentionStepInputs<tf.Tensor>,
  attrs: LinearAttentionStepAttrs,
): tf.Tensor[] => runKernel(kernel, inputs, attrs);

/**
 * The same where s and z are given up. The ones that come back may be the tensors that were given, with new values; where
 * they are others, the given ones keep theirs, and are the caller's to dispose of.
 */
export function runStepInPlace(
  kernel: tf.KernelConfig,
  inputs: LinearAttentionStepInputs<tf.Tensor>,
  attrs: LinearAttentionStepAttrs,
): tf.Tensor[] {
  const {q, k, v, z} = inputs;
  const apart = q.dataId !== z.dataId && k.dataId !== z.dataId && v.dataId !== z.dataId;
  if (!apart || !isUnwatched()) {
    return runKernel(kernel, inputs, attrs);
  }
  // Not by spreading, which takes as long as all else here.
  const {featureMap, normalize, eps, scale} = attrs;
  return runUnwatched(kernel, inputs, {featureMap, normalize, eps, scale, inPlace: true});
}

/** What a kernelFunc or gradFunc is handed, read as this kernel's. */
export const stepInputsOf = (inputs: object): LinearAttentionStepInputs =>
  inputs as LinearAttentionStepInputs;
export const stepAttrsOf = (attrs: object | undefined): LinearAttentionStepAttrs =>
  attrs as LinearAttentionStepAttrs;

/** The same step as a call over a sequence of length 1: reshaping infos costs nothing. `mask` is a placeholder. */
export function asSequence(
  {q, k, v, s, z}: LinearAttentionStepInputs,
  attrs: LinearAttentionStepAttrs,
): {inputs: LinearAttentionInputs; attrs: LinearAttentionAttrs} {
  const sequence = (x: tf.TensorInfo) => ({
    dataId: x.dataId,
    dtype: x.dtype,
    shape: [x.shape[0], x.shape[1], 1, x.shape[2]],
  });
  return {
    inputs: {q: sequence(q), k: sequence(k), v: sequence(v), mask: q, s, z},
    attrs: sequenceAttrs(attrs),
  };
}

/** The step's attributes as those of a sequence. */
export const sequenceAttrs = (attrs: LinearAttentionStepAttrs): LinearAttentionAttrs => ({
  ...attrs,
  updateRule: 'linear',
  causal: true,
  dataFormat: 'BHND',
  hasMask: false,
  hasState: true,
});

/** The gradient is that of a sequence of length 1. Forward ran without `inverse`, so it runs again. */
export const linearAttentionStepGradient: tf.GradConfig = {
  kernelName: LinearAttentionStep,
  inputsToSave: ['q', 'k', 'v', 's', 'z'],
  gradFunc: (dys, saved, namedAttrs) => {
    const [dOutput, dS, dZ] = dys as tf.Tensor[];
    const [q, k, v, s, z] = saved;
    const attrs = sequenceAttrs(stepAttrsOf(namedAttrs));
    const sequence = (x: tf.Tensor) => tf.expandDims(x, 2);
    const inputs = {q: sequence(q), k: sequence(k), v: sequence(v), mask: tf.zeros([1]), s, z};
    const [output, , , inverse] = tf
      .engine()
      .runKernel(LinearAttention, asInputs(inputs), asAttrs(attrs)) as tf.Tensor[];
    const gradients = linearAttentionGradient.gradFunc(
      [sequence(dOutput), dS, dZ],
      [inputs.q, inputs.k, inputs.v, inputs.mask, s, z, output, inverse],
      asAttrs(attrs),
    );
    const token = (name: string) => tf.squeeze(gradients[name](), [2]);
    return {q: () => token('q'), k: () => token('k'), v: () => token('v'), s: gradients.s, z: gradients.z};
  },
};
