/**
 * The one place that touches what tfjs does not export (what concerns layers stands in tfjs_layers.ts, calls of kernels
 * in tfjs_kernels.ts): everything here was read in tfjs 4.22 and is guarded, so that a later tfjs that moves a field gives
 * a clear error or a slower path, never a wrong number.
 */
import * as tf from '@tensorflow/tfjs-core';

export * from './tfjs_kernels';
export * from './tfjs_layers';

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

interface WasmData {
  memoryOffset: number | null;
}

/** The parts of tfjs's wasm backend that our kernels use to work in place on its linear memory. */
interface WasmBackend {
  wasm?: {
    asm?: {[name: string]: unknown};
    wasmMemory?: unknown;
    HEAPU8?: Uint8Array;
    _malloc?: (bytes: number) => number;
    _free?: (at: number) => void;
  };
  dataIdMap?: {
    get(id: object): WasmData | undefined;
    /** What dataIdMap looks ids up in, after it has seen to those of other backends. */
    data?: {get(id: object): WasmData | undefined};
  };
  makeOutput?: (shape: number[], dtype: tf.DataType, memoryOffset?: number) => tf.TensorInfo;
}

const memories = new WeakMap<object, WebAssembly.Memory | null>();

/**
 * The linear memory of tfjs's wasm backend (plain, SIMD and threaded builds keep it in different places), or null
 * where this tfjs does not show it or hides something else that in-place kernels need.
 */
export function wasmMemory(backend: object): WebAssembly.Memory | null {
  let memory = memories.get(backend);
  if (memory === undefined) {
    memory = findMemory(backend);
    memories.set(backend, memory);
  }
  return memory;
}

function findMemory({wasm, dataIdMap, makeOutput}: WasmBackend): WebAssembly.Memory | null {
  const usable = typeof wasm?._malloc === 'function' && typeof wasm._free === 'function';
  if (!usable || !wasm.HEAPU8 || !dataIdMap || typeof makeOutput !== 'function') {
    return null;
  }
  for (const candidate of [wasm.wasmMemory, ...Object.values(wasm.asm ?? {})]) {
    if (isMemory(candidate) && candidate.buffer === wasm.HEAPU8.buffer) {
      return candidate;
    }
  }
  return null;
}

/** Not by instanceof: the memory may come from another realm (a test runner's, an iframe's). */
const isMemory = (x: unknown): x is WebAssembly.Memory =>
  Object.prototype.toString.call(x) === '[object WebAssembly.Memory]';

/**
 * Where a tensor's values lie in the wasm backend's memory, in bytes. Ask after every allocation of the call:
 * addresses are stable, but views of the memory are not.
 */
export function wasmOffset(backend: unknown, info: tf.TensorInfo): number {
  const {dataIdMap} = backend as Required<WasmBackend>;
  const data = dataIdMap.data?.get(info.dataId) ?? dataIdMap.get(info.dataId);
  if (data?.memoryOffset == null) {
    throw new Error(`wasmOffset: expected a tensor of the wasm backend; got one of shape [${info.shape}].`);
  }
  return data.memoryOffset;
}

/** A new tensor of the wasm backend; its values are whatever the memory held. */
export function wasmOutput(backend: unknown, shape: number[], dtype: tf.DataType = 'float32'): tf.TensorInfo {
  return (backend as Required<WasmBackend>).makeOutput(shape, dtype);
}

/**
 * The same for a float32 tensor of many numbers, at a multiple of 16 bytes if a second try gives that: no vector crosses the
 * end of a cache line then. tfjs's memory comes at multiples of 8.
 */
export function wasmAlignedOutput(backend: unknown, shape: number[]): tf.TensorInfo {
  const {wasm, makeOutput} = backend as Required<WasmBackend>;
  const {_malloc, _free} = wasm as Required<typeof wasm>;
  const bytes = 4 * tf.util.sizeFromShape(shape);
  const first = _malloc(bytes) >>> 0;
  let at = first;
  if (first % 16 !== 0) {
    const second = _malloc(bytes) >>> 0;
    at = second !== 0 && second % 16 === 0 ? second : first;
    _free(at === first ? second : first);
  }
  return at === 0 ? wasmOutput(backend, shape) : makeOutput.call(backend, shape, 'float32', at);
}

/**
 * A view of a float32 or int32 tensor's values in the wasm backend's memory. Take it after every allocation of the
 * call: when the memory grows, older views are detached.
 */
export function wasmView(backend: unknown, info: tf.TensorInfo): Float32Array | Int32Array {
  const {buffer} = (backend as {wasm: {HEAPU8: Uint8Array}}).wasm.HEAPU8;
  const size = tf.util.sizeFromShape(info.shape);
  return info.dtype === 'int32'
    ? new Int32Array(buffer, wasmOffset(backend, info), size)
    : new Float32Array(buffer, wasmOffset(backend, info), size);
}

/** `size` float32 numbers of the wasm backend's memory from the address `at` on: a view, good until the next allocation. */
export function wasmFloats(backend: unknown, at: number, size: number): Float32Array {
  return new Float32Array((backend as {wasm: {HEAPU8: Uint8Array}}).wasm.HEAPU8.buffer, at, size);
}

/** Calls f with the address of `bytes` bytes of the wasm backend's memory (16-byte aligned), and frees them. */
export function withWasmScratch<T>(backend: unknown, bytes: number, f: (at: number) => T): T {
  const {_malloc, _free} = (backend as Required<WasmBackend>).wasm as {
    _malloc: (bytes: number) => number;
    _free: (at: number) => void;
  };
  // Addresses above 2 GB come back negative.
  const at = _malloc(Math.max(16, bytes)) >>> 0;
  if (at === 0) {
    throw new Error(`the wasm backend is out of memory: ${bytes} bytes of scratch were refused.`);
  }
  try {
    return f(at);
  } finally {
    _free(at);
  }
}

/** Another tensor over the same values, which live until both are disposed. */
export function sharedInfo(backend: unknown, {dataId, shape, dtype}: tf.TensorInfo): tf.TensorInfo {
  (backend as {incRef(id: object): void}).incRef(dataId);
  return {dataId, shape, dtype};
}

const keptScratch = new WeakMap<object, {at: number; bytes: number}>();

/**
 * The address of `bytes` bytes of the wasm backend's memory that stay allocated for the next call.
 * For a few kilobytes that are used in a hot path, by one call at a time.
 */
export function keptWasmScratch(backend: object, bytes: number): number {
  const kept = keptScratch.get(backend);
  if (kept !== undefined && kept.bytes >= bytes) {
    return kept.at;
  }
  const {_malloc, _free} = (backend as Required<WasmBackend>).wasm as {
    _malloc: (bytes: number) => number;
    _free: (at: number) => void;
  };
  if (kept !== undefined) {
    _free(kept.at);
    keptScratch.delete(backend);
  }
  const at = _malloc(bytes) >>> 0;
  if (at === 0) {
    throw new Error(`the wasm backend is out of memory: ${bytes} bytes of scratch were refused.`);
  }
  keptScratch.set(backend, {at, bytes});
  return at;
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
