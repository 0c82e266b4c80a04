/** Matrix multiplication on the memory of tfjs's wasm backend, by our own packed kernel (src/wasm/assembly/gemm.ts). */
import {broadcast_util, type TensorInfo, util} from '@tensorflow/tfjs-core';
import {wasmMemory, wasmOffset, wasmOutput, withWasmScratch} from '../tfjs';
import {gemmWasm} from '../wasm/generated/gemm';
import {gemmRelaxedWasm} from '../wasm/generated/gemm_relaxed';
import {instantiateForm} from '../wasm/relaxed';

const FORMS = {plain: gemmWasm, relaxed: gemmRelaxedWasm};

/** The numbers that tfjs's wasm backend gives them, which gemm_finish.ts shares. */
export const ACTIVATIONS = {
  linear: 0,
  relu: 1,
  relu6: 2,
  prelu: 3,
  leakyrelu: 4,
  sigmoid: 5,
  elu: 6,
} as const;

/** What follows the product: act(A B + bias). */
export interface Finish {
  /** One number per column of the product, or a single one. */
  bias?: TensorInfo;
  activation: keyof typeof ACTIVATIONS;
  /** leakyrelu's slope. */
  alpha: number;
  /** prelu's slopes: one number per column, or a single one. */
  slopes?: TensorInfo;
}

interface GemmExports {
  gemmScratch(M: number, N: number, K: number): number;
  gemm(
    M: number,
    N: number,
    K: number,
    a: number,
    aRow: number,
    aCol: number,
    b: number,
    bRow: number,
    bCol: number,
    c: number,
    scratch: number,
    bias: number,
    biasStride: number,
    activation: number,
    alpha: number,
    slopes: number,
    slopeStride: number,
  ): void;
}

const NO_FINISH: Finish = {activation: 'linear', alpha: 0};

/**
 * op(a) op(b), batches broadcast, or null where the kernel cannot run (dtype, no SIMD, memory not found).
 * a [..., M, K] or [..., K, M] when transposeA; b [..., K, N] or [..., N, K] when transposeB; both float32.
 */
export function multiplyOnWasm(
  backend: object,
  a: TensorInfo,
  b: TensorInfo,
  transposeA: boolean,
  transposeB: boolean,
  finish = NO_FINISH,
): TensorInfo | null {
  const memory = a.dtype === 'float32' && b.dtype === 'float32' ? wasmMemory(backend) : null;
  const kernel = memory && instantiateForm<GemmExports>(FORMS, memory);
  if (!kernel) {
    return null;
  }
  const [rowsA, columnsA] = a.shape.slice(-2);
  const [rowsB, columnsB] = b.shape.slice(-2);
  let [M, K] = transposeA ? [columnsA, rowsA] : [rowsA, columnsA];
  const [inner, N] = transposeB ? [columnsB, rowsB] : [rowsB, columnsB];
  if (K !== inner) {
    return null;
  }
  const batchShapeA = a.shape.slice(0, -2);
  const batchShapeB = b.shape.slice(0, -2);
  const batchShape = broadcast_util.assertAndGetBroadcastShape(batchShapeA, batchShapeB);
  const out = wasmOutput(backend, [...batchShape, M, N]);
  const outSize = M * N;
  if (util.sizeFromShape(out.shape) === 0) {
    return out;
  }
  let offsetsA = batchOffsets(batchShapeA, batchShape, 4 * M * K);
  let offsetsB = batchOffsets(batchShapeB, batchShape, 4 * K * N);
  if (!transposeA && offsetsA.length > 1 && util.sizeFromShape(batchShapeB) === 1) {
    // One right-hand matrix for all: the left ones are one tall matrix when each occurs once.
    if (util.sizeFromShape(batchShapeA) === offsetsA.length) {
      M *= offsetsA.length;
      offsetsA = [0];
      offsetsB = [0];
    }
  }
  const [aRow, aCol] = transposeA ? [4, 4 * M] : [4 * K, 4];
  const [bRow, bCol] = transposeB ? [4, 4 * K] : [4 * N, 4];
  const {bias, slopes} = finish;
  withWasmScratch(backend, kernel.gemmScratch(M, N, K), (scratch) => {
    const atA = wasmOffset(backend, a);
    const atB = wasmOffset(backend, b);
    const atC = wasmOffset(backend, out);
    const atBias = bias === undefined ? 0 : wasmOffset(backend, bias);
    const atSlopes = slopes === undefined ? 0 : wasmOffset(backend, slopes);
    for (let i = 0; i < offsetsA.length; i++) {
      kernel.gemm(
        M,
        N,
        K,
        atA + offsetsA[i],
        aRow,
        aCol,
        atB + offsetsB[i],
        bRow,
        bCol,
        atC + 4 * outSize * i,
        scratch,
        atBias,
        strideOf(bias),
        ACTIVATIONS[finish.activation],
        finish.alpha,
        atSlopes,
        strideOf(slopes),
      );
    }
  });
  return out;
}

/** Step from column to column: one number per column, or one for all. */
function strideOf(perColumn: TensorInfo | undefined): number {
  return perColumn !== undefined && util.sizeFromShape(perColumn.shape) > 1 ? 4 : 0;
}

/** Where the matrix of each batch of the result starts in an operand whose batch dimensions broadcast to it, in bytes. */
function batchOffsets(shape: number[], outShape: number[], matrixBytes: number): number[] {
  const lead = outShape.length - shape.length;
  let offsets = [0];
  let step = matrixBytes;
  const steps: number[] = outShape.map(() => 0);
  for (let dim = shape.length - 1; dim >= 0; dim--) {
    steps[lead + dim] = shape[dim] === 1 ? 0 : step;
    step *= shape[dim];
  }
  outShape.forEach((size, dim) => {
    offsets = offsets.flatMap((offset) => Array.from({length: size}, (_, i) => offset + i * steps[dim]));
  });
  return offsets;
}
