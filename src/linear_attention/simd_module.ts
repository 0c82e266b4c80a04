/** The SIMD module, in the form that is asked for. */
import {env} from '@tensorflow/tfjs-core';
import {scanWasm} from '../wasm/generated/scan';
import {scanRelaxedWasm} from '../wasm/generated/scan_relaxed';
import {hasRelaxedSimd, instantiate} from '../wasm/instance';
import type {SimdExports} from './simd_arguments';

/**
 * `tf.env().set('LINEAR_ATTENTION_RELAXED_SIMD', true)` asks for fused multiply-adds on the cpu and wasm backends, where
 * the machine has them (Node 22, Chromium 114 and later): 1.2 times as fast, and no longer the same bits on every
 * machine. Without effect elsewhere. Default false.
 */
export const RELAXED_SIMD_FLAG = 'LINEAR_ATTENTION_RELAXED_SIMD';

env().registerFlag(RELAXED_SIMD_FLAG, () => false);

/** The module's functions over `memory`, or null where they cannot run: see `instantiate`. */
export function simdOver(memory: WebAssembly.Memory): SimdExports | null {
  const relaxed = env().getBool(RELAXED_SIMD_FLAG) && hasRelaxedSimd();
  return instantiate<SimdExports>(relaxed ? scanRelaxedWasm : scanWasm, memory);
}
