/** Causal attention over a range of tokens: output, 1 / denominator, and the state after it. */
import {Args, spareRow} from './args';
import {scanPair} from './core';
import {writeTable} from './feature_maps';
import {interleaveAndSum} from './pairs';
import {addRow, copy, loadBlock, rowOf, valueRow, zero} from './rows';
import {packedSize} from './state';

/** What numerators are multiplied by, and what is saved for backward: 1 / (denominator + eps), 0 where that is 0. */
@inline
export function inverseOf(denominator: f32, eps: f32): f32 {
  return denominator == 0 ? <f32>0 : <f32>1 / (denominator + eps);
}

export function forwardCausal(a: Args): void {
  writeTable(a.table);
  for (let n = 0; n < a.length; n += a.block) {
    const count = min(a.block, a.length - n);
    loadBlock(a, a.k, a.r, a.rows, n, count, a.map, true, a.keys);
    loadBlock(a, a.q, a.r, a.rows, n, count, a.map, false, a.queries);
    for (let h = 0; h < a.heads; h++) {
      forwardHead(a, n, count, h);
    }
  }
}

function forwardHead(a: Args, n: i32, count: i32, h: i32): void {
  const rows = a.rows;
  const columns = a.columns;
  const row = (<usize>rows) << 2;
  const token = row * <usize>a.heads;
  const z = a.z + row * <usize>h;
  const state = a.state + <usize>packedSize(rows, columns) * <usize>h * 4;
  const inPlace = a.d == columns;
  let key = a.keys + row * <usize>h;
  let query = a.queries + row * <usize>h;
  zero(a.zLocal, rows);
  for (let t = 0; t < count; t += 2) {
    const first = n + t;
    const both = t + 1 < count;
    const denominators = interleaveAndSum(
      key,
      both ? key + token : a.zeros,
      query,
      both ? query + token : a.zeros,
      a.pairs,
      rows,
      z,
      a.zLocal,
    );
    let factor1 = a.scale;
    let factor2 = a.scale;
    if (a.normalize) {
      factor1 = inverseOf(reinterpret<f32>(<u32>denominators), a.eps);
      factor2 = inverseOf(reinterpret<f32>(<u32>(denominators >> 32)), a.eps);
      store<f32>(rowOf(a, a.inverse, 1, first, h), factor1);
      if (both) {
        store<f32>(rowOf(a, a.inverse, 1, first + 1, h), factor2);
      }
    }
    const v1 = valueRow(a, first, h, spareRow(a, 0));
    const v2 = both ? valueRow(a, first + 1, h, spareRow(a, 1)) : a.zeros;
    const out1 = rowOf(a, a.output, a.d, first, h);
    const out2 = rowOf(a, a.output, a.d, first + 1, h);
    const o1 = inPlace ? out1 : spareRow(a, 2);
    const o2 = inPlace && both ? out2 : spareRow(a, 3);
    scanPair(state, a.pairs, rows, columns, v1, v2, a.zeros, a.zeros, o1, o2, factor1, factor2);
    if (!inPlace) {
      copy(o1, out1, a.d);
      if (both) {
        copy(o2, out2, a.d);
      }
    }
    key += 2 * token;
    query += 2 * token;
  }
  addRow(a.zLocal, z, rows);
}
