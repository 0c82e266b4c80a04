/** The smaller kernels of a training step on tfjs's wasm memory (src/wasm/assembly/training.ts). Addresses in bytes. */
import {wasmMemory} from '../tfjs';
import {trainingWasm} from './generated/training';
import {instantiate} from './instance';

export interface TrainingExports {
  adamW(
    n: number,
    w: number,
    g: number,
    m: number,
    v: number,
    w2: number,
    m2: number,
    v2: number,
    beta1: number,
    rest1: number,
    beta2: number,
    rest2: number,
    epsilon: number,
    rate: number,
    keep: number,
  ): void;
  columnSums(M: number, N: number, x: number, out: number): void;
  layerNorm(
    rows: number,
    D: number,
    x: number,
    gamma: number,
    beta: number,
    y: number,
    epsilon: number,
  ): void;
  /** scratch: 2 D numbers. */
  layerNormGrad(
    rows: number,
    D: number,
    x: number,
    gamma: number,
    dy: number,
    dx: number,
    dGamma: number,
    dBeta: number,
    epsilon: number,
    scratch: number,
  ): void;
  rotary(
    B: number,
    first: number,
    second: number,
    r: number,
    batchStep: number,
    firstStep: number,
    secondStep: number,
    x: number,
    y: number,
    cos: number,
    sin: number,
    sign: number,
    interleaved: boolean,
  ): void;
}

/** Null where they cannot run: no SIMD, or memory that cannot be found. */
export function trainingExports(backend: object): TrainingExports | null {
  const memory = wasmMemory(backend);
  return memory && instantiate<TrainingExports>(trainingWasm, memory);
}
