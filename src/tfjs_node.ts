/**
 * What is private in tfjs-node (the backend 'tensorflow'): running a TensorFlow operation by name. The part of
 * src/tfjs.ts that is about tfjs-node; the same rules hold.
 */
import type * as tf from '@tensorflow/tfjs-core';

interface Attribute {
  name: string;
  type: number;
  value: boolean | number;
}

/** The parts of the backend that our kernels use. */
export interface NodeBackend {
  binding: {[constant: string]: number} & {TF_Version: string; getNumOfTensors(): number};
  isUsingGpuDevice: boolean;
  executeMultipleOutputs(
    name: string,
    attributes: Attribute[],
    inputs: tf.TensorInfo[],
    outputs: number,
  ): tf.Tensor[];
}

/** tfjs-node's backend, or null where this tfjs-node keeps its parts elsewhere. */
export function nodeBackend(backend: unknown): NodeBackend | null {
  const parts = (backend ?? {}) as Partial<NodeBackend>;
  const usable =
    typeof parts.executeMultipleOutputs === 'function' && typeof parts.binding?.TF_Version === 'string';
  return usable ? (parts as NodeBackend) : null;
}

/** Attributes of an operation by kind. A type is named as the binding's constant is: TF_FLOAT. */
export interface OperationAttributes {
  types?: {[name: string]: string};
  booleans?: {[name: string]: boolean};
  integers?: {[name: string]: number};
  floats?: {[name: string]: number};
}

/** Runs a TensorFlow operation. Its outputs are tensors of the current tidy. */
export function runOperation(
  backend: NodeBackend,
  name: string,
  inputs: tf.TensorInfo[],
  attributes: OperationAttributes,
  outputs = 1,
): tf.Tensor[] {
  const {binding} = backend;
  const {types = {}, booleans = {}, integers = {}, floats = {}} = attributes;
  const all = (type: string, values: {[name: string]: boolean | number}): Attribute[] =>
    Object.entries(values).map(([name, value]) => ({name, type: binding[type], value}));
  const typeNumbers = Object.fromEntries(
    Object.entries(types).map(([name, constant]) => [name, binding[constant]]),
  );
  return backend.executeMultipleOutputs(
    name,
    [
      ...all('TF_ATTR_TYPE', typeNumbers),
      ...all('TF_ATTR_BOOL', booleans),
      ...all('TF_ATTR_INT', integers),
      ...all('TF_ATTR_FLOAT', floats),
    ],
    inputs,
    outputs,
  );
}
