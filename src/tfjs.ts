/**
 * The one place that touches what tfjs does not export (what concerns layers stands in tfjs_layers.ts, calls of kernels
 * in tfjs_kernels.ts, scopes of tf.tidy in tfjs_scopes.ts, the wasm backend's memory in tfjs_memory.ts): everything here was
 * read in tfjs 4.22 and is guarded, so that a later tfjs that moves a field gives a clear error or a slower path, never a
 * wrong number.
 */
import * as tf from '@tensorflow/tfjs-core';

export * from './tfjs_kernels';
export * from './tfjs_layers';
export * from './tfjs_memory';
export * from './tfjs_scopes';

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

/** How many gradient computations record operations at this moment. Above 1: gradients will be differentiated. */
export function openTapes(): number {
  const state = (tf.engine() as unknown as {state?: EngineState}).state;
  return state?.gradientDepth ?? 2;
}

/**
 * Gradients of the scalar f() inside a gradient function, null where f does not depend on x. tfjs has one tape, and a
 * gradient that is computed while another is being played back would end it: so that one is put aside meanwhile. While
 * an outer tape records, this is recorded too.
 */
export function gradientsInside(f: () => tf.Tensor, xs: tf.Tensor[]): (tf.Tensor | null)[] {
  const engine = tf.engine();
  const state = (engine as unknown as {state: EngineState & {activeTape?: unknown}}).state;
  const outer = state.activeTape;
  try {
    return engine.gradients(f, xs, undefined, true).grads.map((gradient) => gradient ?? null);
  } finally {
    if (!isHigherOrder()) {
      state.activeTape = outer;
    }
  }
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

/** True where tensors live in half-float textures (webgl on most phones): nothing above 65504, 11 bits of precision. */
export function isHalfFloat(): boolean {
  return tf.getBackend() === 'webgl' && !tf.env().getBool('WEBGL_RENDER_FLOAT32_ENABLED');
}

/** Another tensor over the same values, which live until both are disposed. */
export function sharedInfo(backend: unknown, {dataId, shape, dtype}: tf.TensorInfo): tf.TensorInfo {
  (backend as {incRef(id: object): void}).incRef(dataId);
  return {dataId, shape, dtype};
}

/**
 * A kernel's input as a tensor. tfjs's ops hand tensors to a kernel; other kernels hand it bare infos, whose values somebody
 * else owns. To be called inside a tidy, which ends what is made here.
 */
export function asTensor(backend: unknown, x: tf.TensorInfo): tf.Tensor {
  return x instanceof tf.Tensor ? x : tf.engine().makeTensorFromTensorInfo(sharedInfo(backend, x));
}

/** Frees what a tensor that a kernel made holds, when the kernel keeps it to itself. */
export function disposeInfo(backend: unknown, info: tf.TensorInfo): void {
  (backend as {disposeData(id: object): boolean}).disposeData(info.dataId);
}

/** The parts of tfjs's webgpu backend that our kernels use. Programs of several outputs are recorded by them alone. */
export interface WebGpuBackend {
  device: {
    limits: {maxComputeWorkgroupsPerDimension: number; maxStorageBufferBindingSize: number};
    createShaderModule(descriptor: {code: string; label: string}): object;
    createComputePipeline(descriptor: object): object;
    createComputePipelineAsync(descriptor: object): Promise<object>;
  };
  adapterInfo?: {vendor?: string; architecture?: string};
  /** By shader key; promises while WEBGPU_ENGINE_COMPILE_ONLY is set. */
  pipelineCache: {[key: string]: object};
  makeTensorInfo(shape: number[], dtype: tf.DataType, values?: tf.BackendValues): tf.TensorInfo;
  /** A cast from bool or int32 changes the tensor's dtype only: this one is the buffer's. */
  tensorMap: {get(id: object): {dtype: tf.DataType}};
  uploadToGPU(id: object): void;
  checkCompileCompletionAsync(): Promise<void>;
  recordAndSubmit(
    program: {pipeline: object; dispatch: [number, number, number]},
    output: tf.TensorInfo,
    inputs: tf.TensorInfo[],
    uniforms: {type: 'int32' | 'float32'; data: number[]}[],
  ): void;
}

/** tfjs's webgpu backend with its private parts, or null where this tfjs keeps them elsewhere. */
export function webgpuBackend(backend: unknown): WebGpuBackend | null {
  const parts = (backend ?? {}) as Partial<WebGpuBackend>;
  const functions = [
    parts.recordAndSubmit,
    parts.uploadToGPU,
    parts.makeTensorInfo,
    parts.device?.createComputePipeline,
  ];
  const maps = [parts.pipelineCache, parts.tensorMap];
  const usable =
    functions.every((f) => typeof f === 'function') && maps.every((map) => typeof map === 'object');
  return usable ? (parts as WebGpuBackend) : null;
}

/** The parts of tfjs's webgl backend that our kernels use. */
export interface WebglBackend {
  runWebGLProgram(
    program: object,
    inputs: tf.TensorInfo[],
    dtype: tf.DataType,
    uniforms: number[][],
    staysPacked: boolean,
  ): tf.TensorInfo;
  makeTensorInfo(shape: number[], dtype: tf.DataType, values: tf.BackendValues): tf.TensorInfo;
  texData: {
    get(
      id: object,
    ): {isPacked?: boolean; shape: number[]; texture?: object | null; texShape?: number[]} | undefined;
  };
}

/** tfjs's webgl backend, or null where this tfjs lacks what our kernels need, or the browser has only WebGL 1. */
export function webglBackend(backend: unknown): WebglBackend | null {
  const parts = (backend ?? {}) as Partial<WebglBackend>;
  const functions = [parts.runWebGLProgram, parts.makeTensorInfo, parts.texData?.get];
  return functions.every((f) => typeof f === 'function') && tf.env().getNumber('WEBGL_VERSION') === 2
    ? (parts as WebglBackend)
    : null;
}

/**
 * The shape under which a tensor lies in a packed texture of webgl (2x2 values a texel), which a reshape that needed
 * no copy does not change; null where it is not in one.
 */
export function packedShape(backend: WebglBackend, info: tf.TensorInfo): number[] | null {
  const data = backend.texData.get(info.dataId);
  return data?.texture != null && data.isPacked ? data.shape : null;
}

/** Whether a tensor's values lie in a texture already, and not in JavaScript's memory. */
export const isOnGpu = (backend: WebglBackend, info: tf.TensorInfo): boolean =>
  backend.texData.get(info.dataId)?.texture != null;

/** Rows and columns of a tensor's texture, in values. */
export function textureShape(backend: WebglBackend, info: tf.TensorInfo): number[] {
  return backend.texData.get(info.dataId)?.texShape ?? [];
}
