/**
 * The one file that touches what tfjs does not export: everything here was read in tfjs 4.22 and is guarded, so that
 * a later tfjs that moves a field gives a clear error or a slower path, never a wrong number.
 */
import * as tf from '@tensorflow/tfjs-core';

interface EngineState {
  gradientDepth?: number;
  kernelDepth?: number;
}

/**
 * True while an outer tape records the operations of a gradient function: the gradient will itself be
 * differentiated, and must be written in differentiable ops.
 */
export function isHigherOrder(): boolean {
  const state = (tf.engine() as unknown as {state?: EngineState}).state;
  return (state?.gradientDepth ?? 1) > 0;
}

/** The cpu backend's values of a tensor, without a copy. */
export function cpuValues(backend: unknown, info: tf.TensorInfo): Float32Array {
  const data = (backend as {data: {get(id: object): {values: tf.BackendValues}}}).data.get(info.dataId);
  const values = data.values;
  return values instanceof Float32Array ? values : Float32Array.from(values as ArrayLike<number>);
}

/** A new tensor of the cpu backend that owns `values`. */
export function cpuTensor(backend: unknown, shape: number[], values: Float32Array): tf.TensorInfo {
  return (
    backend as {makeTensorInfo(shape: number[], dtype: tf.DataType, values: tf.BackendValues): tf.TensorInfo}
  ).makeTensorInfo(shape, 'float32', values);
}
