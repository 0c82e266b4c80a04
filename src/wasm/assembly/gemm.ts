/**
 * C = act(A B + bias): packed single-precision matrix multiplication after Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication" (2008), with a 4 x 8 micro-kernel.
 *
 * A is M x K, B is K x N, C is M x N with contiguous rows. A and B come with a row and a column stride, so that a
 * transposed operand costs nothing more: packing reads it in its own order. Strides are in bytes.
 */
import {finish} from './gemm_finish';
import {micro} from './gemm_micro';
import {pack, panelBytes} from './gemm_pack';
import {dotRows, vectorTimesLongRows, vectorTimesRows} from './gemm_vector';

/**
 * Block sizes. A packed block of A (MC x KC, 128 KB) stays in the second-level cache while all of B's panels pass; a
 * panel of B (KC x 8, 16 KB) and one of A (KC x 4) stay in the first, of 32 KB. C is read and written once per KC.
 */
const KC: i32 = 512;
const MC: i32 = 64;
const NC: i32 = 1024;
/** Up to this many rows of A, B is read where it lies when its rows are contiguous: packing would not pay. */
const DIRECT_ROWS: i32 = 4;

const TILE_BYTES: usize = 128;

// @ts-ignore: decorator
@inline
function panels(lanes: i32, width: i32): i32 {
  return (lanes + width - 1) / width;
}

/** Bytes of so many lanes, packed. */
// @ts-ignore: decorator
@inline
function packedBytes(lanes: i32, width: i32, k: i32): usize {
  return <usize>panels(lanes, width) * panelBytes(width, k);
}

/** Bytes of scratch that `gemm` needs for these sizes. */
export function gemmScratch(M: i32, N: i32, K: i32): usize {
  const k = min(K, KC);
  const packed = packedBytes(min(M, MC), 4, k) + packedBytes(min(N, NC), 8, k);
  return TILE_BYTES + 64 + max(packed, (<usize>K) << 2);
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
  // K in equal parts, of whole rounds of the micro-kernel.
  const depth = panels(panels(K, panels(K, KC)), 8) << 3;
  for (let jc = 0; jc < N; jc += NC) {
    const nb = min(NC, N - jc);
    for (let pc = 0; pc < K; pc += depth) {
      const kb = min(depth, K - pc);
      const packedB = packedA + packedBytes(min(M, MC), 4, kb);
      const bBlock = b + <usize>pc * bRow + <usize>jc * bCol;
      const whole = direct ? nb & ~7 : 0;
      pack(packedB, bBlock + <usize>whole * bCol, bCol, bRow, nb - whole, kb, 8);
      for (let ic = 0; ic < M; ic += MC) {
        const mb = min(MC, M - ic);
        pack(packedA, a + <usize>ic * aRow + <usize>pc * aCol, aRow, aCol, mb, kb, 4);
        let at = c + <usize>ic * cRow + ((<usize>jc) << 2);
        for (let j = 0; j < whole; j += 8) {
          column(kb, packedA, bBlock + ((<usize>j) << 2), bRow, at, cRow, pc > 0, mb, 8, tile);
          at += 32;
        }
        let panel = packedB;
        for (let j = whole; j < nb; j += 8) {
          column(kb, packedA, panel, 32, at, cRow, pc > 0, mb, min(8, nb - j), tile);
          panel += panelBytes(8, kb);
          at += 32;
        }
      }
    }
  }
}

/** Up to 8 columns of C: one panel of B, all panels of a block of A. */
function column(
  k: i32,
  a: usize,
  b: usize,
  stepB: usize,
  c: usize,
  cRow: usize,
  add: bool,
  rows: i32,
  columns: i32,
  tile: usize,
): void {
  if (columns == 8) {
    const tiles = rows >> 2;
    micro(k, a, b, stepB, c, cRow, add, tiles);
    a += <usize>tiles * panelBytes(4, k);
    c += <usize>(tiles << 2) * cRow;
    rows &= 3;
  }
  for (; rows > 0; rows -= 4) {
    micro(k, a, b, stepB, tile, 32, false, 1);
    copyTile(tile, c, cRow, min(4, rows), columns, add);
    a += panelBytes(4, k);
    c += cRow << 2;
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

