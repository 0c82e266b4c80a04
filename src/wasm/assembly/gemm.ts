/**
 * C = act(A B + bias): packed single-precision matrix multiplication after Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication" (2008), with a 4 x 8 micro-kernel.
 *
 * A is M x K, B is K x N, C is M x N with contiguous rows. A and B come with a row and a column stride, so that a
 * transposed operand costs nothing more: packing reads it in its own order. Strides are in bytes.
 */
import {finish} from './gemm_finish';
import {pack} from './gemm_pack';
import {dotRows, vectorTimesLongRows, vectorTimesRows} from './gemm_vector';

/** Block sizes: a packed block of A (MC x KC) fits in the second-level cache, a panel of B (KC x 8) in the first. */
const KC: i32 = 256;
const MC: i32 = 128;
const NC: i32 = 512;
/** Up to this many rows of A, B is read where it lies when its rows are contiguous: packing would not pay. */
const DIRECT_ROWS: i32 = 16;


const TILE_BYTES: usize = 128;

// @ts-ignore: decorator
@inline
function roundUp(n: i32, to: i32): i32 {
  return ((n + to - 1) / to) * to;
}

/** Bytes of scratch that `gemm` needs for these sizes. */
export function gemmScratch(M: i32, N: i32, K: i32): usize {
  const k = min(K, KC);
  const packed = roundUp(min(M, MC), 4) * k + roundUp(min(N, NC), 8) * k;
  return TILE_BYTES + 64 + ((<usize>max(packed, K)) << 2);
}

/**
 * Writes C. `scratch` has `gemmScratch` bytes. `bias` and `slopes` (0: none) hold one number per column, or a single
 * one when their stride is 0 rather than 4. `activation` and `alpha`: see `finish`.
 */
export function gemm(
  M: i32,
  N: i32,
  K: i32,
  a: usize,
  aRow: usize,
  aCol: usize,
  b: usize,
  bRow: usize,
  bCol: usize,
  c: usize,
  scratch: usize,
  bias: usize,
  biasStride: usize,
  activation: i32,
  alpha: f32,
  slopes: usize,
  slopeStride: usize,
): void {
  const cRow = (<usize>N) << 2;
  if (K == 0) {
    memory.fill(c, 0, <usize>M * cRow);
  } else if (M < 4 && (bCol == 4 || bRow == 4)) {
    for (let m = 0; m < M; m++) {
      row(N, K, a + <usize>m * aRow, aCol, b, bRow, bCol, c + <usize>m * cRow, scratch);
    }
  } else if (N == 1 && (aCol == 4 || aRow == 4)) {
    // C is a contiguous vector: the row B^T times A^T.
    row(M, K, b, bRow, a, aCol, aRow, c, scratch);
  } else {
    blocks(M, N, K, a, aRow, aCol, b, bRow, bCol, c, scratch);
  }
  if (bias != 0 || activation != 0) {
    finish(c, M, N, bias, biasStride, activation, alpha, slopes, slopeStride);
  }
}

/** One row of C: a vector times B. */
function row(
  N: i32,
  K: i32,
  a: usize,
  aCol: usize,
  b: usize,
  bRow: usize,
  bCol: usize,
  c: usize,
  scratch: usize,
): void {
  if (bCol == 4) {
    if ((N & 7) == 0 && (K & 3) == 0) {
      memory.fill(c, 0, (<usize>N) << 2);
      vectorTimesLongRows(N, K, a, aCol, b, bRow, c);
    } else {
      vectorTimesRows(N, K, a, aCol, b, bRow, c);
    }
    return;
  }
  if (aCol != 4) {
    for (let k = 0; k < K; k++) {
      store<f32>(scratch + ((<usize>k) << 2), load<f32>(a + <usize>k * aCol));
    }
    a = scratch;
  }
  dotRows(N, K, a, b, bCol, c);
}

function blocks(
  M: i32,
  N: i32,
  K: i32,
  a: usize,
  aRow: usize,
  aCol: usize,
  b: usize,
  bRow: usize,
  bCol: usize,
  c: usize,
  scratch: usize,
): void {
  const cRow = (<usize>N) << 2;
  // Whole cache lines: packed panels are written 64 bytes at a time.
  const tile = (scratch + 63) & ~63;
  const packedA = tile + TILE_BYTES;
  const direct = M <= DIRECT_ROWS && bCol == 4;
  for (let jc = 0; jc < N; jc += NC) {
    const nb = min(NC, N - jc);
    for (let pc = 0; pc < K; pc += KC) {
      const kb = min(KC, K - pc);
      const packedB = packedA + (<usize>(roundUp(min(M, MC), 4) * kb) << 2);
      const bBlock = b + <usize>pc * bRow + <usize>jc * bCol;
      const whole = direct ? nb & ~7 : 0;
      pack(packedB, bBlock + <usize>whole * bCol, bCol, bRow, nb - whole, kb, 8);
      for (let ic = 0; ic < M; ic += MC) {
        const mb = min(MC, M - ic);
        pack(packedA, a + <usize>ic * aRow + <usize>pc * aCol, aRow, aCol, mb, kb, 4);
        const cBlock = c + <usize>ic * cRow + ((<usize>jc) << 2);
        for (let j = 0; j < nb; j += 8) {
          const inPlace = j < whole;
          const panel = inPlace ? bBlock + ((<usize>j) << 2) : packedB + (<usize>((j - whole) * kb) << 2);
          const stepB: usize = inPlace ? bRow : 32;
          for (let i = 0; i < mb; i += 4) {
            const at = cBlock + <usize>i * cRow + ((<usize>j) << 2);
            const from = packedA + (<usize>(i * kb) << 2);
            if (mb - i >= 4 && nb - j >= 8) {
              micro(kb, from, panel, stepB, at, cRow, pc > 0);
            } else {
              micro(kb, from, panel, stepB, tile, 32, false);
              copyTile(tile, at, cRow, min(4, mb - i), min(8, nb - j), pc > 0);
            }
          }
        }
      }
    }
  }
}

/** Part of a 4 x 8 tile into C, at its lower and right edges. */
function copyTile(tile: usize, c: usize, cRow: usize, rows: i32, columns: i32, add: bool): void {
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const at = c + <usize>i * cRow + ((<usize>j) << 2);
      const value = load<f32>(tile + (<usize>(i * 8 + j) << 2));
      store<f32>(at, add ? load<f32>(at) + value : value);
    }
  }
}

/**
 * A 4 x 8 tile of C (+)= a packed panel of A times 8 columns of B; k >= 1.
 *
 * V8 moves the loads of a basic block before its arithmetic and spills when loaded vectors, accumulators and one
 * temporary need more than 15 registers. The exit test between steps ends the block, and keeps each step at 8 + 6 + 1.
 */
function micro(k: i32, a: usize, b: usize, stepB: usize, c: usize, cRow: usize, add: bool): void {
  let c00 = f32x4.splat(0);
  let c01 = c00;
  let c10 = c00;
  let c11 = c00;
  let c20 = c00;
  let c21 = c00;
  let c30 = c00;
  let c31 = c00;
  let x: v128;
  let b0: v128;
  let b1: v128;
  const end = a + ((<usize>k) << 4);
  while (true) {
    b0 = v128.load(b);
    b1 = v128.load(b, 16);
    x = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(x, b0));
    c01 = f32x4.add(c01, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 4);
    c10 = f32x4.add(c10, f32x4.mul(x, b0));
    c11 = f32x4.add(c11, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 8);
    c20 = f32x4.add(c20, f32x4.mul(x, b0));
    c21 = f32x4.add(c21, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 12);
    c30 = f32x4.add(c30, f32x4.mul(x, b0));
    c31 = f32x4.add(c31, f32x4.mul(x, b1));
    a += 16;
    if (a == end) break;
    b += stepB;
    b0 = v128.load(b);
    b1 = v128.load(b, 16);
    x = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(x, b0));
    c01 = f32x4.add(c01, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 4);
    c10 = f32x4.add(c10, f32x4.mul(x, b0));
    c11 = f32x4.add(c11, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 8);
    c20 = f32x4.add(c20, f32x4.mul(x, b0));
    c21 = f32x4.add(c21, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 12);
    c30 = f32x4.add(c30, f32x4.mul(x, b0));
    c31 = f32x4.add(c31, f32x4.mul(x, b1));
    a += 16;
    if (a == end) break;
    b += stepB;
    b0 = v128.load(b);
    b1 = v128.load(b, 16);
    x = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(x, b0));
    c01 = f32x4.add(c01, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 4);
    c10 = f32x4.add(c10, f32x4.mul(x, b0));
    c11 = f32x4.add(c11, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 8);
    c20 = f32x4.add(c20, f32x4.mul(x, b0));
    c21 = f32x4.add(c21, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 12);
    c30 = f32x4.add(c30, f32x4.mul(x, b0));
    c31 = f32x4.add(c31, f32x4.mul(x, b1));
    a += 16;
    if (a == end) break;
    b += stepB;
    b0 = v128.load(b);
    b1 = v128.load(b, 16);
    x = v128.load32_splat(a);
    c00 = f32x4.add(c00, f32x4.mul(x, b0));
    c01 = f32x4.add(c01, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 4);
    c10 = f32x4.add(c10, f32x4.mul(x, b0));
    c11 = f32x4.add(c11, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 8);
    c20 = f32x4.add(c20, f32x4.mul(x, b0));
    c21 = f32x4.add(c21, f32x4.mul(x, b1));
    x = v128.load32_splat(a, 12);
    c30 = f32x4.add(c30, f32x4.mul(x, b0));
    c31 = f32x4.add(c31, f32x4.mul(x, b1));
    a += 16;
    if (a == end) break;
    b += stepB;
  }
  if (add) {
    v128.store(c, f32x4.add(v128.load(c), c00));
    v128.store(c, f32x4.add(v128.load(c, 16), c01), 16);
    c += cRow;
    v128.store(c, f32x4.add(v128.load(c), c10));
    v128.store(c, f32x4.add(v128.load(c, 16), c11), 16);
    c += cRow;
    v128.store(c, f32x4.add(v128.load(c), c20));
    v128.store(c, f32x4.add(v128.load(c, 16), c21), 16);
    c += cRow;
    v128.store(c, f32x4.add(v128.load(c), c30));
    v128.store(c, f32x4.add(v128.load(c, 16), c31), 16);
  } else {
    v128.store(c, c00);
    v128.store(c, c01, 16);
    c += cRow;
    v128.store(c, c10);
    v128.store(c, c11, 16);
    c += cRow;
    v128.store(c, c20);
    v128.store(c, c21, 16);
    c += cRow;
    v128.store(c, c30);
    v128.store(c, c31, 16);
  }
}
