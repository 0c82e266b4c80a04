/**
 * What is private in tfjs-node (the backend 'tensorflow'): running a TensorFlow operation by name. The part of
 * src/tfjs.ts that is about tfjs-node; the same rules hold.
 */
import type * as tf from '@tensorflow/tfjs-core';

/** An attribute as the binding takes it. */
export interface Attribute {
  name: string;
  type: number;
  value: number | boolean;
}

/** The parts of the backend that our kernels use. */
export interface NodeBackend {
  binding: {[constant: string]: number} & {
    TF_Version: string;
    getNumOfTensors(): number;
    executeOp(name: string, attributes: Attribute[], inputs: number[], outputs: number): unknown;
  };
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

/** Attributes by name: types, each named as the binding's constant is (TF_FLOAT), booleans and integers. */
export function attributesOf(
  {binding}: NodeBackend,
  values: {[name: string]: string | boolean | number},
): Attribute[] {
  return Object.entries(values).map(([name, value]) => {
    switch (typeof value) {
      case 'string':
        return {name, type: binding.TF_ATTR_TYPE, value: binding[value]};
      case 'boolean':
        return {name, type: binding.TF_ATTR_BOOL, value};
      default:
        return {name, type: binding.TF_ATTR_INT, value};
    }
  });
}

/** Runs a TensorFlow operation. Its outputs are tensors of the current tidy. */
export const runOperation = (
  backend: NodeBackend,
  name: string,
  inputs: tf.TensorInfo[],
  attributes: Attribute[] = [],
  outputs = 1,
): tf.Tensor[] => backend.executeMultipleOutputs(name, attributes, inputs, outputs);

/** The names of attributes that tfjs-node's own kernels for floats, integers and booleans give to TensorFlow. */
const ATTRIBUTE_NAMES =
  'DstT Index N SrcT T TI T_threshold Taxis Tblock_shape Tcomplex Tcrops Tidx Tindex Tindices Tlen Tmultiples ' +
  'Tnumsegments Tout Tpaddings Tparams Tperm Tshape Truncate adj_x adj_y align_corners alpha axis batch_dims ' +
  'begin_mask beta bias block_size data_format depth_radius dilations ellipsis_mask end_mask epsilon equation ' +
  'exclusive explicit_paddings extrapolation_value half_pixel_centers index_type is_training keep_dims ksize ' +
  'method mode new_axis_mask num num_split out_idx output_dtype output_type padding rates reverse seed seed2 ' +
  'shrink_axis_mask sorted strides transpose_a transpose_b use_cudnn_on_gpu validate_indices';

/** No kind of attribute: an error, before anything runs. */
const NO_KIND = -1;

/**
 * Makes tfjs-node know the names of attributes before a second thread asks for one. It keeps them in one set for all
 * threads, without a lock: a call that adds a name while a worker thread looks for another can lose an attribute
 * ("NodeDef missing attr"), or crash. Looking alone is safe. To be called in one thread at a time, before other operations
 * run.
 */
export function rememberAttributeNames({binding}: NodeBackend): void {
  const attributes = ATTRIBUTE_NAMES.split(' ').map((name) => ({name, type: binding.TF_ATTR_INT, value: 0}));
  try {
    binding.executeOp('NoOp', [...attributes, {name: 'T', type: NO_KIND, value: 0}], [], 0);
  } catch {
    // As it should: the names are known by then.
  }
}
