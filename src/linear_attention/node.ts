/** The kernels of tfjs-node: the native operations where they were built, else the composed form. */
import * as tf from '@tensorflow/tfjs-core';
import {BACKWARD, FORWARD, hasNative, STEP} from '../node/native';
import {POINTWISE_MAPS} from '../pointwise';
import {type NodeBackend, nodeBackend, type OperationAttributes, runOperation} from '../tfjs_node';
import {composedForward} from './composed';
import {composedKernels, live} from './composed_kernels';
import {NODE_PIECES} from './node_pieces';
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

const [stockForward, stockBackward] = composedKernels('tensorflow', NODE_PIECES);

/** The backend where the native operations run in it, else null. */
function native(backend: unknown): NodeBackend | null {
  const found = nodeBackend(backend);
  return found !== null && hasNative(found) ? found : null;
}

const operationAttributes = (attrs: LinearAttentionAttrs): OperationAttributes => ({
  integers: {map: POINTWISE_MAPS.indexOf(attrs.featureMap)},
  floats: {eps: attrs.eps, scale: attrs.scale},
  booleans: {
    causal: attrs.causal,
    normalize: attrs.normalize,
    bnhd: attrs.dataFormat === 'BNHD',
    has_mask: attrs.hasMask,
    has_state: attrs.hasState,
    return_state: attrs.returnState !== false,
  },
});

const forward: tf.KernelFunc = (args) => {
  const backend = native(args.backend);
  if (backend === null) {
    return stockForward.kernelFunc(args);
  }
  const {q, k, v, mask, s, z} = inputsOf(args.inputs);
  return runOperation(backend, FORWARD, [q, k, v, mask, s, z], operationAttributes(attrsOf(args.attrs)), 4);
};

const backward: tf.KernelFunc = (args) => {
  const backend = native(args.backend);
  if (backend === null) {
    return stockBackward.kernelFunc(args);
  }
  const {q, k, v, mask, s, z, output, inverse, dOutput, dS, dZ} = gradInputsOf(args.inputs);
  return runOperation(
    backend,
    BACKWARD,
    [q, k, v, mask, s, z, output, inverse, dOutput, dS, dZ],
    operationAttributes(attrsOf(args.attrs)),
    5,
  );
};

/** A step as a sequence of length 1. TensorFlow's tensors know their shapes, so that infos cannot be given others. */
const composedStep = (inputs: LinearAttentionStepInputs, attrs: LinearAttentionAttrs): tf.Tensor[] =>
  tf.tidy(() => {
    const {q, k, v, s, z} = live(inputs);
    const [query, key, value] = [q, k, v].map((x) => tf.expandDims(x, 2));
    const sequence = {q: query, k: key, v: value, mask: tf.zeros([1]), s, z};
    const [output, newS, newZ] = composedForward(sequence, attrs, NODE_PIECES);
    return [tf.squeeze(output, [2]), newS, newZ];
  });

const step: tf.KernelFunc = (args) => {
  const inputs = stepInputsOf(args.inputs);
  const attrs = stepAttrsOf(args.attrs);
  const backend = native(args.backend);
  if (backend === null) {
    return composedStep(inputs, sequenceAttrs(attrs));
  }
  const {q, k, v, s, z} = inputs;
  return runOperation(backend, STEP, [q, k, v, s, z], operationAttributes(sequenceAttrs(attrs)), 3);
};

/** For tfjs-node's backend. */
export const nodeKernels: tf.KernelConfig[] = [
  {kernelName: LinearAttention, backendName: 'tensorflow', kernelFunc: forward},
  {kernelName: LinearAttentionGrad, backendName: 'tensorflow', kernelFunc: backward},
  {kernelName: LinearAttentionStep, backendName: 'tensorflow', kernelFunc: step},
];
