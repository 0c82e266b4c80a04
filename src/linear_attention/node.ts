/** The kernels of tfjs-node: the native operations where they were built, else the composed form. */
import * as tf from '@tensorflow/tfjs-core';
import {BACKWARD, FORWARD, hasNative, prepareNative, STEP} from '../node/native';
import {POINTWISE_MAPS} from '../pointwise';
import {type NodeBackend, nodeBackend, runOperation} from '../tfjs_node';
import {live} from './composed_kernels';
import {nodeBackward, nodeForward} from './node_composed';
import {
  attrsOf,
  gradInputsOf,
  inputsOf,
  LinearAttention,
  type LinearAttentionAttrs,
  LinearAttentionGrad,
} from './spec';
import {
  LinearAttentionStep,
  type LinearAttentionStepInputs,
  sequenceAttrs,
  stepAttrsOf,
  stepInputsOf,
} from './step';

/** The backend where the native operations run in it, else null. */
function native(backend: unknown): NodeBackend | null {
  const found = nodeBackend(backend);
  return found !== null && hasNative(found) ? found : null;
}

/** The options of a call in the order of `Settings` in native/linear_attention.cc, which says why they are no attributes. */
const settingsOf = (attrs: LinearAttentionAttrs): number[] => [
  POINTWISE_MAPS.indexOf(attrs.featureMap),
  attrs.eps,
  attrs.scale,
  ...[
    attrs.causal,
    attrs.normalize,
    attrs.dataFormat === 'BNHD',
    attrs.hasMask,
    attrs.hasState,
    attrs.returnState !== false,
  ].map(Number),
];

/** Runs a native operation. */
function run(
  backend: NodeBackend,
  name: string,
  inputs: tf.TensorInfo[],
  attrs: LinearAttentionAttrs,
  outputs: number,
): tf.Tensor[] {
  const settings = tf.tensor1d(settingsOf(attrs), 'float32');
  try {
    return runOperation(backend, name, [...inputs, settings], [], outputs);
  } finally {
    tf.dispose(settings);
  }
}

const forward: tf.KernelFunc = (args) => {
  const inputs = inputsOf(args.inputs);
  const attrs = attrsOf(args.attrs);
  const backend = native(args.backend);
  if (backend === null) {
    const node = args.backend as NodeBackend;
    return tf.tidy(() => nodeForward(node, live(inputs, node), attrs));
  }
  const {q, k, v, mask, s, z} = inputs;
  return run(backend, FORWARD, [q, k, v, mask, s, z], attrs, 4);
};

const backward: tf.KernelFunc = (args) => {
  const inputs = gradInputsOf(args.inputs);
  const attrs = attrsOf(args.attrs);
  const backend = native(args.backend);
  if (backend === null) {
    const node = args.backend as NodeBackend;
    return tf.tidy(() => {
      const all = live(inputs, node);
      return nodeBackward(node, all, all, attrs);
    });
  }
  const {q, k, v, mask, s, z, output, inverse, dOutput, dS, dZ} = inputs;
  const all = [q, k, v, mask, s, z, output, inverse, dOutput, dS, dZ];
  return run(backend, BACKWARD, all, attrs, 5);
};

/** A step as a sequence of length 1. TensorFlow's tensors know their shapes, so that infos cannot be given others. */
const composedStep = (
  backend: NodeBackend,
  inputs: LinearAttentionStepInputs,
  attrs: LinearAttentionAttrs,
): tf.Tensor[] =>
  tf.tidy(() => {
    const {q, k, v, s, z} = live(inputs, backend);
    const [query, key, value] = [q, k, v].map((x) => tf.expandDims(x, 2));
    const sequence = {q: query, k: key, v: value, mask: q, s, z};
    // The state after the token is the one that it sees: no causal form is needed.
    const [output, newS, newZ] = nodeForward(backend, sequence, {...attrs, causal: false});
    return [tf.squeeze(output, [2]), newS, newZ];
  });

const step: tf.KernelFunc = (args) => {
  const inputs = stepInputsOf(args.inputs);
  const attrs = stepAttrsOf(args.attrs);
  const backend = native(args.backend);
  if (backend === null) {
    return composedStep(args.backend as NodeBackend, inputs, sequenceAttrs(attrs));
  }
  const {q, k, v, s, z} = inputs;
  return run(backend, STEP, [q, k, v, s, z], sequenceAttrs(attrs), 3);
};

/** When tfjs-node's backend is made the one in use, or was before. */
function prepare(backend: unknown): void {
  const found = nodeBackend(backend);
  if (found !== null) {
    prepareNative(found);
  }
}

/** For tfjs-node's backend. */
export const nodeKernels: tf.KernelConfig[] = [
  {kernelName: LinearAttention, backendName: 'tensorflow', kernelFunc: forward, setupFunc: prepare},
  {kernelName: LinearAttentionGrad, backendName: 'tensorflow', kernelFunc: backward},
  {kernelName: LinearAttentionStep, backendName: 'tensorflow', kernelFunc: step},
];

// tfjs calls setupFunc of kernels only that it knew before the backend.
prepare(tf.findBackend('tensorflow'));
