/**
 * Non-causal attention: one pass over keys sums the state, one over queries reads it. Backward the same twice, see
 * backward.ts for the formulas; every sum over s >= t or s <= t becomes one over all s.
 */
import {Args, spareRow} from './args';
import {writeTable} from './feature_maps';
import {inverseOf} from './forward';
import {finishRow, gradientBlock} from './gradient';
import {dot, interleave} from './pairs';
import {accumulate, readFour} from './products';
import {addRow, addScaled, copy, keeps, loadBlock, rowOf, storeBlock, touchBlock, zero} from './rows';
import {packedSize} from './state';

/** state and z += what the range's keys and values add. */
export function forwardKeys(a: Args): void {
  sumKeys(a, false);
}

/** The same into `transposed`, and phi(k) is left in dk's memory. */
export function backwardState(a: Args): void {
  sumKeys(a, true);
}

function sumKeys(a: Args, backward: bool): void {
  writeTable(a.table);
  const rows = a.rows;
  const columns = a.columns;
  const row = (<usize>rows) << 2;
  const packed = a.mask != 0 || a.d != columns;
  const keyStep = row * <usize>a.heads;
  const valueStep = <usize>(packed ? columns * a.heads : a.d * a.tokenStride) * 4;
  for (let n = 0; n < a.length; n += a.block) {
    const count = min(a.block, a.length - n);
    loadBlock(a, a.k, a.r, rows, n, count, a.map, true, a.keys);
    if (!packed) {
      touchBlock(a, a.v, a.d, n, count);
    } else {
      loadBlock(a, a.v, a.d, columns, n, count, 0, true, a.values);
    }
    if (backward) {
      storeBlock(a, a.keys, a.r, rows, n, count, a.dk);
    }
    for (let h = 0; h < a.heads; h++) {
      const key = a.keys + row * <usize>h;
      const value = packed ? a.values + <usize>(columns * h) * 4 : rowOf(a, a.v, a.d, n, h);
      const size = <usize>packedSize(rows, columns) * <usize>h * 4;
      if (backward) {
        accumulate(a.transposed + size, columns, rows, value, valueStep, key, keyStep, count, a.gathered);
      } else {
        accumulate(a.state + size, rows, columns, key, keyStep, value, valueStep, count, a.gathered);
      }
      const sum = spareRow(a, 0);
      zero(sum, rows);
      for (let t = 0; t < count; t++) {
        addRow(key + keyStep * <usize>t, sum, rows);
      }
      addRow(sum, a.z + row * <usize>h, rows);
    }
  }
}

/** Output and inverse of the range's queries. */
export function forwardQueries(a: Args): void {
  writeTable(a.table);
  const rows = a.rows;
  const columns = a.columns;
  const row = (<usize>rows) << 2;
  const inPlace = a.d == columns;
  for (let n = 0; n < a.length; n += a.block) {
    const count = min(a.block, a.length - n);
    loadBlock(a, a.q, a.r, rows, n, count, a.map, false, a.queries);
    touchBlock(a, a.output, a.d, n, count);
    for (let h = 0; h < a.heads; h++) {
      const state = a.state + <usize>packedSize(rows, columns) * <usize>h * 4;
      for (let t = 0; t < count; t += 4) {
        packFour(a, a.queries, rows, t, count, h);
        let factors = f32x4.splat(a.scale);
        if (a.normalize) {
          const at = spareRow(a, 0);
          for (let i = 0; i < 4 && t + i < count; i++) {
            const query = a.queries + <usize>((t + i) * a.heads + h) * row;
            const inverse = inverseOf(dot(query, a.z + row * <usize>h, rows), a.eps);
            store<f32>(rowOf(a, a.inverse, 1, n + t + i, h), inverse);
            store<f32>(at + ((<usize>i) << 2), inverse);
          }
          factors = v128.load(at);
        }
        readRows(a, state, rows, columns, a.output, a.d, inPlace, n + t, count - t, h, factors);
        finishReads(a, a.output, a.d, inPlace, n + t, count - t, h);
      }
    }
  }
}

/** pairs = rows t .. t + 4 of a block [count, heads, size]; zeros beyond count. */
function packFour(a: Args, block: usize, size: i32, t: i32, count: i32, h: i32): void {
  const step = <usize>(a.heads * size) * 4;
  const at = block + <usize>((t * a.heads + h) * size) * 4;
  interleave(
    at,
    t + 1 < count ? at + step : a.zeros,
    t + 2 < count ? at + 2 * step : a.zeros,
    t + 3 < count ? at + 3 * step : a.zeros,
    a.pairs,
    size,
  );
}

/** Reads a state with the four packed rows into tokens n .. n + 4 of dst, or into spare rows 1 to 4. */
function readRows(
  a: Args,
  state: usize,
  rows: i32,
  columns: i32,
  dst: usize,
  size: i32,
  inPlace: bool,
  n: i32,
  left: i32,
  h: i32,
  factors: v128,
): void {
  readFour(
    state,
    rows,
    columns,
    a.pairs,
    inPlace ? rowOf(a, dst, size, n, h) : spareRow(a, 1),
    inPlace && left > 1 ? rowOf(a, dst, size, n + 1, h) : spareRow(a, 2),
    inPlace && left > 2 ? rowOf(a, dst, size, n + 2, h) : spareRow(a, 3),
    inPlace && left > 3 ? rowOf(a, dst, size, n + 3, h) : spareRow(a, 4),
    factors,
  );
}

function finishReads(a: Args, dst: usize, size: i32, inPlace: bool, n: i32, left: i32, h: i32): void {
  if (!inPlace) {
    for (let i = 0; i < 4 && i < left; i++) {
      copy(spareRow(a, 1 + i), rowOf(a, dst, size, n + i, h), size);
    }
  }
}

/**
 * dq, from `transposed` and z; and the sums over queries: state += sum phi(q) d num^T, zLocal += sum e phi(q).
 */
export function backwardQueries(a: Args): void {
  writeTable(a.table);
  const rows = a.rows;
  const columns = a.columns;
  const row = (<usize>rows) << 2;
  const width = (<usize>columns) << 2;
  const heads = <usize>a.heads;
  for (let n = 0; n < a.length; n += a.block) {
    const count = min(a.block, a.length - n);
    loadBlock(a, a.q, a.r, rows, n, count, a.map, false, a.queries);
    gradientBlock(a, n, count);
    for (let h = 0; h < a.heads; h++) {
      const size = <usize>packedSize(rows, columns) * <usize>h * 4;
      const z = a.z + row * <usize>h;
      const w = a.zLocal + row * <usize>h;
      const query = a.queries + row * <usize>h;
      const dNumerator = a.values + width * <usize>h;
      accumulate(
        a.state + size,
        rows,
        columns,
        query,
        row * heads,
        dNumerator,
        width * heads,
        count,
        a.gathered,
      );
      for (let t = 0; t < count; t += 4) {
        packFour(a, a.values, columns, t, count, h);
        readRows(a, a.transposed + size, columns, rows, a.dq, a.r, false, n + t, count - t, h, f32x4.splat(1));
        for (let i = 0; i < 4 && t + i < count; i++) {
          const at = <usize>(t + i) * heads;
          const e = load<f32>(a.dDenominator + (at + <usize>h) * 4);
          const phi = query + at * row;
          const gradient = spareRow(a, 1 + i);
          addScaled(gradient, e, z, gradient, rows);
          addScaled(w, e, phi, w, rows);
          finishRow(a, gradient, phi, rowOf(a, a.dq, a.r, n + t + i, h), true);
        }
      }
    }
  }
}

/** dk and dv, from state, `transposed` and zLocal: the gradients of the summed state. */
export function backwardKeys(a: Args): void {
  const rows = a.rows;
  const columns = a.columns;
  const row = (<usize>rows) << 2;
  const heads = <usize>a.heads;
  const inPlace = a.d == columns;
  for (let n = 0; n < a.length; n += a.block) {
    const count = min(a.block, a.length - n);
    loadBlock(a, a.dk, a.r, rows, n, count, 0, false, a.keys);
    loadBlock(a, a.v, a.d, columns, n, count, 0, true, a.values);
    for (let h = 0; h < a.heads; h++) {
      const size = <usize>packedSize(rows, columns) * <usize>h * 4;
      const w = a.zLocal + row * <usize>h;
      for (let t = 0; t < count; t += 4) {
        packFour(a, a.values, columns, t, count, h);
        readRows(a, a.transposed + size, columns, rows, a.dk, a.r, false, n + t, count - t, h, f32x4.splat(1));
        for (let i = 0; i < 4 && t + i < count; i++) {
          const phi = a.keys + (<usize>(t + i) * heads + <usize>h) * row;
          const gradient = spareRow(a, 1 + i);
          addRow(w, gradient, rows);
          finishRow(a, gradient, phi, rowOf(a, a.dk, a.r, n + t + i, h), keeps(a, n + t + i));
        }
        packFour(a, a.keys, rows, t, count, h);
        readRows(a, a.state + size, rows, columns, a.dv, a.d, inPlace, n + t, count - t, h, f32x4.splat(1));
        finishReads(a, a.dv, a.d, inPlace, n + t, count - t, h);
        for (let i = 0; i < 4 && t + i < count; i++) {
          if (!keeps(a, n + t + i)) {
            zero(rowOf(a, a.dv, a.d, n + t + i, h), a.d);
          }
        }
      }
    }
  }
}
