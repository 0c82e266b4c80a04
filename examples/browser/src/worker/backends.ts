/** Which tfjs backends this browser has, and how to change to one. */
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-webgl';
import '@tensorflow/tfjs-backend-webgpu';
import {setWasmPaths} from '@tensorflow/tfjs-backend-wasm';
import * as tf from '@tensorflow/tfjs-core';
import type {BackendName, BackendReport} from './protocol';

/** The smallest module there is: magic number and version. */
const EMPTY_MODULE = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

export async function startBackends({
  wasm: {plain, simd},
}: {
  wasm: {plain: string; simd: string};
}): Promise<BackendReport[]> {
  tf.enableProdMode();
  // The threaded build needs headers that static hosts do not send; tfjs wants an address for it all the same.
  tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
  setWasmPaths({
    'tfjs-backend-wasm.wasm': plain,
    'tfjs-backend-wasm-simd.wasm': simd,
    'tfjs-backend-wasm-threaded-simd.wasm': simd,
  });
  return [
    {name: 'webgpu', unavailable: await whyNoWebGPU()},
    {name: 'webgl', unavailable: whyNoWebGL()},
    {name: 'wasm', unavailable: whyNoWasm()},
    {name: 'cpu', unavailable: null},
  ];
}

async function whyNoWebGPU(): Promise<string | null> {
  // Its types are not among TypeScript's own yet.
  const {gpu} = navigator as {gpu?: {requestAdapter(): Promise<object | null>}};
  if (gpu === undefined) {
    return self.isSecureContext ? 'This browser has no WebGPU.' : 'WebGPU needs https or localhost.';
  }
  try {
    return (await gpu.requestAdapter()) === null ? 'WebGPU finds no graphics adapter.' : null;
  } catch (error) {
    return `WebGPU: ${(error as Error).message}`;
  }
}

function whyNoWebGL(): string | null {
  if (typeof OffscreenCanvas === 'undefined') return 'This browser has no canvas for workers.';
  return new OffscreenCanvas(1, 1).getContext('webgl2') === null ? 'This browser has no WebGL 2.' : null;
}

function whyNoWasm(): string | null {
  if (typeof WebAssembly === 'undefined') return 'This browser has no WebAssembly.';
  try {
    new WebAssembly.Module(EMPTY_MODULE);
    return null;
  } catch {
    return 'This page may not compile WebAssembly (Content-Security-Policy).';
  }
}

export async function useBackend(name: BackendName): Promise<void> {
  let works = false;
  try {
    works = await tf.setBackend(name);
    await tf.ready();
  } catch (error) {
    throw new Error(`The ${name} backend could not be started: ${(error as Error).message}`);
  }
  if (!works) throw new Error(`The ${name} backend could not be started.`);
}
