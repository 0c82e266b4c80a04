/**
 * Causal backward. With [d num, e] from gradient.ts, V~ = [V, 1] and S~ = [S, z], the gradients are the scan of core.ts
 * again, forwards in time for dq and backwards for dk and dv:
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
import {writeTable} from './feature_maps';
import {finishBlock, gradientBlock} from './gradient';
import {interleave, sumAndScale, sumScaled} from './pairs';
import {copy, keeps, loadAndTouch, rowOf, storeBlock, touchBlock, valueRow, zero} from './rows';
import {packedSize} from './state';

/** First pass. `transposed` and z hold the state before the range, [columns, rows], and then the one after it. */
export function backwardQueriesCausal(a: Args): void {
  writeTable(a.table);
  store<f32>(a.factors, 1, 0);
  store<f32>(a.factors, 1, 4);
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
    interleave(v1, dNumerator, v2, both ? dNumerator + valueStep : a.zeros, a.pairs, columns);
    const dq1 = rowOf(a, a.dq, a.r, n + t, h);
    const dq2 = rowOf(a, a.dq, a.r, n + t + 1, h);
    const o1 = inPlace ? dq1 : spareRow(a, 2);
    const o2 = inPlace && both ? dq2 : spareRow(a, 3);
    scanPair(state, a.pairs, a.pairs + ((<usize>columns) << 4), rows, key, key2, initial1, initial2, o1, o2, a.factors);
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

/** Second pass, from the last token to the first. `state`, `transposed` and z hold G, its transpose and w. */
export function backwardKeysCausal(a: Args): void {
  writeTable(a.table);
  store<f32>(a.factors, 1, 0);
  store<f32>(a.factors, 1, 4);
  for (let end = a.length; end > 0; ) {
    const count = ((end - 1) % a.block) + 1;
    const n = end - count;
    loadAndTouch(a, a.q, a.r, a.rows, n, count, a.map, false, a.queries, a.v, a.d, true);
    loadAndTouch(a, a.dk, a.r, a.rows, n, count, 0, false, a.keys, a.dv, a.d, true);
    gradientBlock(a, n, count);
    // One state at a time, so that it stays in the first-level cache.
    for (let h = 0; h < a.heads; h++) {
      for (let t = count - 1; t >= 0; t -= 2) {
        keysOfPair(a, n, t, h);
      }
      for (let t = count - 1; t >= 0; t -= 2) {
        valuesOfPair(a, n, t, h);
      }
    }
    finishBlock(a, a.dk, a.keys, n, count, true);
    finishBlock(a, a.dq, a.queries, n, count, false);
    end = n;
  }
}

/** d phi(k) of tokens n + t and, where t > 0, n + t - 1. */
function keysOfPair(a: Args, n: i32, t: i32, h: i32): void {
  const rows = a.rows;
  const columns = a.columns;
  const both = t > 0;
  const state = a.transposed + <usize>packedSize(rows, columns) * <usize>h * 4;
  const at = <usize>(t * a.heads + h);
  const before = at - <usize>a.heads;
  const row = (<usize>rows) << 2;
  const width = (<usize>columns) << 2;
  const q1 = a.queries + at * row;
  const q2 = both ? a.queries + before * row : a.zeros;
  const dNumerator1 = a.values + at * width;
  const dNumerator2 = both ? a.values + before * width : a.zeros;

  const w = a.z + row * <usize>h;
  const initial1 = spareRow(a, 4);
  const initial2 = spareRow(a, 5);
  const e1 = load<f32>(a.dDenominator + at * 4);
  const e2 = both ? load<f32>(a.dDenominator + before * 4) : <f32>0;
  sumScaled(w, q1, q2, e1, e2, initial1, initial2, rows);

  const v1 = valueRow(a, n + t, h, spareRow(a, 0));
  const v2 = both ? valueRow(a, n + t - 1, h, spareRow(a, 1)) : a.zeros;
  const inPlace = a.r == rows;
  const dk1 = rowOf(a, a.dk, a.r, n + t, h);
  const dk2 = rowOf(a, a.dk, a.r, n + t - 1, h);
  const o1 = inPlace ? dk1 : spareRow(a, 2);
  const o2 = inPlace && both ? dk2 : spareRow(a, 3);
  interleave(dNumerator1, v1, dNumerator2, v2, a.pairs, columns);
  scanPair(state, a.pairs, a.pairs + ((<usize>columns) << 4), rows, q1, q2, initial1, initial2, o1, o2, a.factors);
  if (!inPlace) {
    copy(o1, dk1, a.r);
    if (both) {
      copy(o2, dk2, a.r);
    }
  }
}

/** dv of the same tokens. */
function valuesOfPair(a: Args, n: i32, t: i32, h: i32): void {
  const rows = a.rows;
  const columns = a.columns;
  const both = t > 0;
  const state = a.state + <usize>packedSize(rows, columns) * <usize>h * 4;
  const at = <usize>(t * a.heads + h);
  const before = at - <usize>a.heads;
  const row = (<usize>rows) << 2;
  const width = (<usize>columns) << 2;
  const inPlace = a.d == columns;
  const dv1 = rowOf(a, a.dv, a.d, n + t, h);
  const dv2 = rowOf(a, a.dv, a.d, n + t - 1, h);
  const o1 = inPlace ? dv1 : spareRow(a, 2);
  const o2 = inPlace && both ? dv2 : spareRow(a, 3);
  const q1 = a.queries + at * row;
  const q2 = both ? a.queries + before * row : a.zeros;
  const k1 = a.keys + at * row;
  const k2 = both ? a.keys + before * row : a.zeros;
  const dNumerator1 = a.values + at * width;
  const dNumerator2 = both ? a.values + before * width : a.zeros;
  interleave(q1, k1, q2, k2, a.pairs, rows);
  scanPair(state, a.pairs, a.pairs + ((<usize>rows) << 4), columns, dNumerator1, dNumerator2, a.zeros, a.zeros, o1, o2, a.factors);
  finishValue(a, n + t, o1, dv1);
  if (both) {
    finishValue(a, n + t - 1, o2, dv2);
  }
}

function finishValue(a: Args, n: i32, dValue: usize, dv: usize): void {
  if (!keeps(a, n)) {
    zero(dv, a.d);
  } else if (dValue != dv) {
    copy(dValue, dv, a.d);
  }
}
