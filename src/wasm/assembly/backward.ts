/**
 * Causal backward. With [d num, e] from gradient.ts, V~ = [V, 1] and S~ = [S, z], the gradients are scans again, forwards
 * in time for dq (core.ts) and backwards for dk and dv (core_both_sides.ts):
 *
 *     d phi(q)_t = S_t d num_t + e_t z_t
 *     d phi(k)_t = G_t v_t + w_t          G_t = dS + sum_{s >= t} phi(q)_s d num_s^T,   w_t = dz + sum_{s >= t} e_s phi(q)_s
 *     d v_t      = G_t^T phi(k)_t
 *
 * States are summed up again from their own end, so no state is kept for any token. phi is computed once for each of q
 * and k: the first pass leaves phi(k) in dk's memory and d phi(q) in dq's, the second finishes both.
 */
import {Args, spareRow} from './args';
import {scanPair} from './core';
import {scanBothSides, sumPartials} from './core_both_sides';
import {writeTable} from './feature_maps';
import {finishBlock, gradientBlock} from './gradient';
import {interleaveAndMultiply, interleaveTwo, sumAndScale} from './pairs';
import {addScaled, copy, keeps, loadAndTouch, rowOf, storeBlock, touchBlock, valueRow, zero} from './rows';
import {packedSize} from './state';

/** First pass. `transposed` and z hold the state before the range, [columns, rows], and then the one after it. */
export function backwardQueriesCausal(a: Args): void {
  writeTable(a.table);
  store<f32>(a.coefficients, 1, 0);
  store<f32>(a.coefficients, 1, 4);
  for (let n = 0; n < a.length; n += a.block) {
    const count = min(a.block, a.length - n);
    loadAndTouch(a, a.k, a.r, a.rows, n, count, a.map, true, a.keys, a.v, a.d);
    storeBlock(a, a.keys, a.r, a.rows, n, count, a.dk);
    gradientBlock(a, n, count);
    touchBlock(a, a.dq, a.r, n, count);
    for (let h = 0; h < a.heads; h++) {
      queriesOfHead(a, n, count, h);
    }
  }
}

function queriesOfHead(a: Args, n: i32, count: i32, h: i32): void {
  const rows = a.rows;
  const columns = a.columns;
  const row = (<usize>rows) << 2;
  const keyStep = row * <usize>a.heads;
  const valueStep = (<usize>(columns * a.heads)) << 2;
  const z = a.z + row * <usize>h;
  const state = a.transposed + <usize>packedSize(rows, columns) * <usize>h * 4;
  const inPlace = a.r == rows;
  let key = a.keys + row * <usize>h;
  let dNumerator = a.values + <usize>(columns * h) * 4;
  let e = a.dDenominator + ((<usize>h) << 2);
  const eStep = (<usize>a.heads) << 2;
  for (let t = 0; t < count; t += 2) {
    const both = t + 1 < count;
    const key2 = both ? key + keyStep : a.zeros;
    const initial1 = spareRow(a, 4);
    const initial2 = spareRow(a, 5);
    sumAndScale(z, key, key2, load<f32>(e), both ? load<f32>(e + eStep) : <f32>0, initial1, initial2, rows);
    const v1 = valueRow(a, n + t, h, spareRow(a, 0));
    const v2 = both ? valueRow(a, n + t + 1, h, spareRow(a, 1)) : a.zeros;
    interleaveAndMultiply(v1, dNumerator, v2, both ? dNumerator + valueStep : a.zeros, a.pairs, columns, a.coefficients);
    const dq1 = rowOf(a, a.dq, a.r, n + t, h);
    const dq2 = rowOf(a, a.dq, a.r, n + t + 1, h);
    const o1 = inPlace ? dq1 : spareRow(a, 2);
    const o2 = inPlace && both ? dq2 : spareRow(a, 3);
    scanPair(state, a.pairs, a.pairs + ((<usize>columns) << 4), rows, key, key2, initial1, initial2, o1, o2, a.coefficients);
    if (!inPlace) {
      copy(o1, dq1, a.r);
      if (both) {
        copy(o2, dq2, a.r);
      }
    }
    key += 2 * keyStep;
    dNumerator += 2 * valueStep;
    e += 2 * eStep;
  }
}

/** Second pass, from the last token to the first. `state` and z hold G and w. */
export function backwardKeysCausal(a: Args): void {
  writeTable(a.table);
  for (let end = a.length; end > 0; ) {
    const count = ((end - 1) % a.block) + 1;
    const n = end - count;
    loadAndTouch(a, a.q, a.r, a.rows, n, count, a.map, false, a.queries, a.v, a.d, true);
    loadAndTouch(a, a.dk, a.r, a.rows, n, count, 0, false, a.keys, a.dv, a.d, true);
    gradientBlock(a, n, count);
    // One state at a time, so that it stays in the first-level cache.
    for (let h = 0; h < a.heads; h++) {
      for (let t = count - 1; t >= 0; t--) {
        keyAndValue(a, n, t, h);
      }
    }
    finishBlock(a, a.dk, a.keys, n, count, true);
    finishBlock(a, a.dq, a.queries, n, count, false);
    end = n;
  }
}

/** d phi(k) and dv of token n + t. */
function keyAndValue(a: Args, n: i32, t: i32, h: i32): void {
  const rows = a.rows;
  const columns = a.columns;
  const state = a.state + <usize>packedSize(rows, columns) * <usize>h * 4;
  const at = <usize>(t * a.heads + h);
  const row = (<usize>rows) << 2;
  const query = a.queries + at * row;
  const dNumerator = a.values + at * ((<usize>columns) << 2);
  const w = a.z + row * <usize>h;
  addScaled(w, load<f32>(a.dDenominator + at * 4), query, w, rows);

  const value = valueRow(a, n + t, h, spareRow(a, 0));
  const dv = rowOf(a, a.dv, a.d, n + t, h);
  const dk = rowOf(a, a.dk, a.r, n + t, h);
  const dValue = a.d == columns ? dv : spareRow(a, 1);
  const dKey = a.r == rows ? dk : spareRow(a, 2);
  interleaveTwo(query, a.keys + at * row, a.pairs, rows);
  zero(a.partial, rows << 2);
  scanBothSides(state, a.pairs, rows, columns, dNumerator, value, dValue, a.partial);
  sumPartials(a.partial, w, dKey, rows);
  if (dKey != dk) {
    copy(dKey, dk, a.r);
  }
  finishValue(a, n + t, dValue, dv);
}

function finishValue(a: Args, n: i32, dValue: usize, dv: usize): void {
  if (!keeps(a, n)) {
    zero(dv, a.d);
  } else if (dValue != dv) {
    copy(dValue, dv, a.d);
  }
}
