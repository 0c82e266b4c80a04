/** The memory of tfjs's wasm backend. What is read here was read in tfjs 4.22, and is guarded as tfjs.ts says. */
import * as tf from '@tensorflow/tfjs-core';

interface WasmData {
  /** The number by which the compiled code knows the tensor. */
  id?: number;
  memoryOffset: number | null;
  /** Tensors that have these values: a reshaped one shares them. */
  refCount?: number;
}

/** The parts of tfjs's wasm backend that our kernels use to work in place on its linear memory. */
interface WasmBackend {
  wasm?: {
    asm?: {[name: string]: unknown};
    wasmMemory?: unknown;
    HEAPU8?: Uint8Array;
    _malloc?: (bytes: number) => number;
    _free?: (at: number) => void;
    tfjs?: {
      registerTensor?: (id: number, size: number, at: number) => void;
      disposeData?: (id: number) => void;
    };
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
  const data = dataOf(backend, info);
  if (data?.memoryOffset == null) {
    throw new Error(`wasmOffset: expected a tensor of the wasm backend; got one of shape [${info.shape}].`);
  }
  return data.memoryOffset;
}

/** What the backend knows of a tensor. */
function dataOf(backend: unknown, {dataId}: tf.TensorInfo): WasmData | undefined {
  const {dataIdMap} = backend as Required<WasmBackend>;
  return dataIdMap.data?.get(dataId) ?? dataIdMap.get(dataId);
}

/** True where this tensor's values may be overwritten: no other shares them, and wasmOverwritten can tell of it. */
export function isWasmOwner(backend: unknown, info: tf.TensorInfo): boolean {
  const {wasm} = backend as Required<WasmBackend>;
  const data = dataOf(backend, info);
  return (
    data?.refCount === 1 &&
    data.id !== undefined &&
    wasm.tfjs?.disposeData !== undefined &&
    wasm.tfjs.registerTensor !== undefined
  );
}

/**
 * Tells the wasm backend that a tensor of isWasmOwner has other values now. XNNPACK's operators keep a packed copy of what
 * they multiply with (matMul's b, a filter) until the tensor is disposed of: so it is, and registered again.
 */
export function wasmOverwritten(backend: unknown, info: tf.TensorInfo, size: number): void {
  const {wasm} = backend as Required<WasmBackend>;
  const {id, memoryOffset} = dataOf(backend, info) as Required<WasmData>;
  const {disposeData, registerTensor} = wasm.tfjs as Required<NonNullable<typeof wasm.tfjs>>;
  disposeData(id);
  registerTensor(id, size, memoryOffset as number);
}

/** A new tensor of the wasm backend; its values are whatever the memory held. */
export function wasmOutput(backend: unknown, shape: number[], dtype: tf.DataType = 'float32'): tf.TensorInfo {
  return (backend as Required<WasmBackend>).makeOutput(shape, dtype);
}

/** Places that wasmAlignedOutput looks at. Of two that follow one another one is right, but freed ones are given out first. */
const TRIES = 4;

/**
 * The same for a float32 tensor of many numbers, at a multiple of 16 bytes where one is found: no vector crosses the end of a
 * cache line then. tfjs's memory comes at multiples of 8.
 */
export function wasmAlignedOutput(backend: unknown, shape: number[]): tf.TensorInfo {
  const {wasm, makeOutput} = backend as Required<WasmBackend>;
  const {_malloc, _free} = wasm as Required<typeof wasm>;
  const bytes = 4 * tf.util.sizeFromShape(shape);
  const tried = [_malloc(bytes) >>> 0];
  // 0, where there is no more memory, ends it too.
  while (tried[tried.length - 1] % 16 !== 0 && tried.length < TRIES) {
    tried.push(_malloc(bytes) >>> 0);
  }
  const last = tried[tried.length - 1];
  const at = last !== 0 && last % 16 === 0 ? last : tried[0];
  for (const other of tried) {
    if (other !== at) {
      _free(other);
    }
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
