/** The kernels of tfjs-node: the native operations where they were built, else the composed form. */
import type * as tf from '@tensorflow/tfjs-core';
import {BACKWARD, FORWARD, hasNative, STEP} from '../node/native';
import {POINTWISE_MAPS} from '../pointwise';
import {type NodeBackend, nodeBackend, type OperationAttributes, runOperation} from '../tfjs_node';
import {composedKernels, composedStep} from './composed_kernels';
import {NODE_PIECES} from './node_pieces';
import {
  attrsOf,
  gradInputsOf,
  inputsOf,
  LinearAttention,
  type LinearAttentionAttrs,
  LinearAttentionGrad,
} from './spec';
import {LinearAttentionStep, sequenceAttrs, stepAttrsOf, stepInputsOf} from './step';

const [composedForward, composedBackward] = composedKernels('tensorflow', NODE_PIECES);

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
    return composedForward.kernelFunc(args);
  }
  const {q, k, v, mask, s, z} = inputsOf(args.inputs);
  return runOperation(backend, FORWARD, [q, k, v, mask, s, z], operationAttributes(attrsOf(args.attrs)), 4);
};

const backward: tf.KernelFunc = (args) => {
  const backend = native(args.backend);
  if (backend === null) {
    return composedBackward.kernelFunc(args);
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

const step: tf.KernelFunc = (args) => {
  const inputs = stepInputsOf(args.inputs);
  const attrs = stepAttrsOf(args.attrs);
  const backend = native(args.backend);
  if (backend === null) {
    return composedStep(composedForward.kernelFunc, inputs, attrs, args.backend as object);
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
