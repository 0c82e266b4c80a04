/**
 * tfjs's webgpu backend inside Node, on Dawn (npm package `webgpu`): training and inference on a GPU, or on a software
 * Vulkan driver. An entry point of its own, `tfjs-linear-attention/node-webgpu`: nothing else in the package needs it.
 */
import * as tf from '@tensorflow/tfjs-core';
import './kernels/webgpu';
import {check, checkOneOf, checkOptions, fail, show} from './src/errors';

/** Options of `useNodeWebGPU`. */
export interface NodeWebGPUOptions {
  /** Name of the GPU to use, or a part of it, as Dawn lists them. Default: what the driver prefers. */
  adapter?: string;
  /** Default 'high-performance'. */
  powerPreference?: 'high-performance' | 'low-power';
  /** Further options of Dawn, such as 'backend=vulkan' or 'enable-dawn-features=...'. */
  dawn?: string[];
  /**
   * Called with every error that the device reports on its own: WebGPU throws none. Default: throws it outside of any
   * call, which ends the process unless 'uncaughtException' is handled, because results after it may be wrong.
   */
  onError?: (error: Error) => void;
}

/** The device that tfjs works on. */
export interface NodeWebGPU {
  vendor: string;
  architecture: string;
  /** Such as 'NVIDIA GeForce RTX 3060', or 'SwiftShader driver 5.0.0'. */
  description: string;
  /** True for a driver that computes on the CPU. */
  isSoftware: boolean;
  /** Removes the backend with all its tensors and frees the device. */
  dispose(): void;
}

/** What is used of Dawn, which is an optional peer. */
interface Device {
  lost: Promise<{reason: string; message: string}>;
  limits: {[name: string]: number};
  addEventListener(type: 'uncapturederror', listener: (event: {error: {message: string}}) => void): void;
  destroy(): void;
}
interface Adapter {
  info: {
    vendor: string;
    architecture: string;
    device: string;
    description: string;
    isFallbackAdapter?: boolean;
  };
  limits: {[name: string]: number};
  features: {has(name: string): boolean};
  requestDevice(descriptor: object): Promise<Device>;
}
interface Dawn {
  globals: object;
  create(options: string[]): {requestAdapter(options: object): Promise<Adapter | null>};
}

const FN = 'useNodeWebGPU';
const BACKEND = 'webgpu';
/** What tfjs's own registration asks for in a browser. */
const LIMITS = [
  'maxComputeWorkgroupStorageSize',
  'maxComputeWorkgroupsPerDimension',
  'maxStorageBufferBindingSize',
  'maxBufferSize',
  'maxComputeWorkgroupSizeX',
  'maxComputeInvocationsPerWorkgroup',
];

let current: NodeWebGPU | null = null;

/**
 * Makes tfjs's webgpu backend the active one in Node. Needs the packages `webgpu` and `@tensorflow/tfjs-backend-webgpu`
 * and a driver: Metal, Direct3D 12 or Vulkan of a GPU, or a software Vulkan driver, which is found through
 * VK_ICD_FILENAMES (and LD_LIBRARY_PATH) if they are set before Node starts. A second call returns the same device.
 *
 * Tensors are read with `await tensor.data()`: WebGPU has no synchronous read in Node.
 *
 * @throws Error for wrong options, missing packages, and where no driver is found.
 *
 * ```js
 * const {useNodeWebGPU} = require('tfjs-linear-attention/node-webgpu');
 * const gpu = await useNodeWebGPU();
 * console.log(gpu.description);
 * ```
 */
export async function useNodeWebGPU(options: NodeWebGPUOptions = {}): Promise<NodeWebGPU> {
  checkOptions(FN, options, ['adapter', 'powerPreference', 'dawn', 'onError']);
  const {
    adapter: name,
    powerPreference = 'high-performance',
    dawn: flags = [],
    onError = throwLater,
  } = options;
  check(
    name === undefined || (typeof name === 'string' && name !== ''),
    FN,
    () => `expected adapter to be the name of a GPU; got ${show(name)}.`,
  );
  checkOneOf(FN, 'powerPreference', powerPreference, ['high-performance', 'low-power']);
  check(
    Array.isArray(flags) && flags.every((flag) => typeof flag === 'string'),
    FN,
    () => `expected dawn to be an array of strings; got ${show(flags)}.`,
  );
  check(typeof onError === 'function', FN, () => `expected onError to be a function; got ${show(onError)}.`);
  check(typeof process !== 'undefined' && !!process.versions?.node, FN, () => 'expected to run in Node.');
  if (current !== null) {
    await tf.setBackend(BACKEND);
    return current;
  }

  const {globals, create} = await load('webgpu', () => import('webgpu') as Promise<Dawn>);
  // GPUBufferUsage and its like, which tfjs reads as globals.
  Object.assign(globalThis, globals);
  const gpu = create([...(name === undefined ? [] : [`adapter=${name}`]), ...flags]);
  const adapter = await findAdapter(gpu, {powerPreference});
  const timestamps = adapter.features.has('timestamp-query');
  const device = await adapter.requestDevice({
    requiredFeatures: timestamps ? ['timestamp-query'] : [],
    requiredLimits: Object.fromEntries(LIMITS.map((limit) => [limit, adapter.limits[limit]])),
  });
  device.addEventListener('uncapturederror', ({error}) =>
    onError(new Error(`the WebGPU device reports: ${error.message}`)),
  );
  device.lost.then(({reason, message}) => {
    if (reason !== 'destroyed') {
      onError(new Error(`the WebGPU device was lost: ${message}`));
    }
  });

  showGpu(gpu);
  const {WebGPUBackend} = await load('@tensorflow/tfjs-backend-webgpu', importBackend);
  // The package's own registration waits for a browser's navigator; with ours in place it may just have run.
  tf.removeBackend(BACKEND);
  tf.registerBackend(
    BACKEND,
    () => explainReads(new WebGPUBackend(device as never, adapter.info as never)),
    3,
  );
  check(await tf.setBackend(BACKEND), FN, () => 'the webgpu backend could not be initialised.');
  await tf.ready();

  const {vendor, architecture, description, device: model, isFallbackAdapter} = adapter.info;
  current = {
    vendor,
    architecture,
    description: description || model,
    isSoftware: isFallbackAdapter === true || architecture === 'swiftshader',
    dispose() {
      current = null;
      tf.removeBackend(BACKEND);
      device.destroy();
    },
  };
  return current;
}

/** What is used of the backend package, whose types name those of browsers. */
interface BackendModule {
  WebGPUBackend: new (device: never, info: never) => tf.KernelBackend;
}

async function importBackend(): Promise<BackendModule> {
  const imported: BackendModule & {default?: BackendModule} = await import('@tensorflow/tfjs-backend-webgpu');
  // Node finds the names of a CommonJS module by reading it, and not always all.
  return imported.WebGPUBackend === undefined && imported.default ? imported.default : imported;
}

async function load<T>(name: string, imported: () => Promise<T>): Promise<T> {
  try {
    return await imported();
  } catch (error) {
    fail(FN, `the package '${name}' could not be loaded (npm install ${name}): ${(error as Error).message}`);
  }
}

/** tfjs reads synchronously through a canvas, which Node has not. */
function explainReads(backend: tf.KernelBackend): tf.KernelBackend {
  const readSync = backend.readSync.bind(backend);
  backend.readSync = (id) => {
    try {
      return readSync(id);
    } catch (error) {
      throw error instanceof ReferenceError
        ? new Error(
            'dataSync, arraySync and print cannot read from WebGPU in Node; use await tensor.data() or array().',
          )
        : error;
    }
  };
  return backend;
}

async function findAdapter(gpu: ReturnType<Dawn['create']>, wanted: object): Promise<Adapter> {
  let reason = '';
  try {
    const adapter = await gpu.requestAdapter(wanted);
    if (adapter !== null) {
      return adapter;
    }
  } catch (error) {
    reason = ` Dawn says: ${(error as Error).message}`;
  }
  return fail(
    FN,
    `found no GPU driver that WebGPU can use. A software Vulkan driver, such as the SwiftShader that comes with Chromium, is found when VK_ICD_FILENAMES names its .json file and LD_LIBRARY_PATH its folder before Node starts.${reason}`,
  );
}

/** tfjs refuses to make the backend where navigator.gpu is missing. Node has a navigator from version 21 on. */
function showGpu(gpu: object): void {
  const {navigator} = globalThis as {navigator?: object};
  if (navigator === undefined) {
    const made = {gpu, userAgent: `Node.js/${process.versions.node}`};
    Object.defineProperty(globalThis, 'navigator', {value: made, configurable: true});
  } else {
    Object.defineProperty(navigator, 'gpu', {value: gpu, configurable: true});
  }
}

function throwLater(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}
