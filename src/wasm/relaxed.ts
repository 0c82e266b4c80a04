/** Which of a module's two forms runs: SIMD, or relaxed SIMD where it is asked for and there. */
import {env} from '@tensorflow/tfjs-core';
import {hasRelaxedSimd, instantiate} from './instance';

/**
 * `tf.env().set('LINEAR_ATTENTION_RELAXED_SIMD', true)` asks for fused multiply-adds on the cpu and wasm backends, where
 * the machine has them (Node 22, Chromium 114 and later), in attention and in the products of `patches.wasmMatMul`:
 * faster, and no longer the same bits on every machine. Without effect elsewhere. Default false.
 */
export const RELAXED_SIMD_FLAG = 'LINEAR_ATTENTION_RELAXED_SIMD';

env().registerFlag(RELAXED_SIMD_FLAG, () => false);

/** The exports of the form that is asked for, or null where it cannot run: see `instantiate`. */
export function instantiateForm<E>(
  {plain, relaxed}: {plain: string; relaxed: string},
  memory: WebAssembly.Memory,
): E | null {
  const fused = env().getBool(RELAXED_SIMD_FLAG) && hasRelaxedSimd();
  return instantiate<E>(fused ? relaxed : plain, memory);
}
