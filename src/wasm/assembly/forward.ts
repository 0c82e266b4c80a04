/** Causal attention over a range of tokens: output, 1 / denominator, and the state after it. */
import {Args, spareRow} from './args';
import {scanPairFromZero} from './core';
import {scanPairLong} from './core_long';
import {writeTable} from './feature_maps';
import {interleaveAndSum} from './pairs';
import {addRow, copy, loadAndTouch, rowOf, valueRow, zero} from './rows';
import {packedSize} from './state';

/** What numerators are multiplied by, and what is saved for backward: 1 / (denominator + eps), 0 where that is 0. */
@inline
export function inverseOf(denominator: f32, eps: f32): f32 {
  return denominator == 0 ? <f32>0 : <f32>1 / (denominator + eps);
}

export function forwardCausal(a: Args): void {
  writeTable(a.table);
  store<f32>(a.coefficients, a.scale, 0);
  store<f32>(a.coefficients, a.scale, 4);
  for (let n = 0; n < a.length; n += a.block) {
    const count = min(a.block, a.length - n);
    loadAndTouch(a, a.k, a.r, a.rows, n, count, a.map, true, a.keys, a.v, a.d);
    loadAndTouch(a, a.q, a.r, a.rows, n, count, a.map, false, a.queries, a.output, a.d);
    for (let h = 0; h < a.heads; h++) {
      forwardHead(a, n, count, h);
    }
  }
}

function forwardHead(a: Args, n: i32, count: i32, h: i32): void {
  const rows = a.rows;
  const columns = a.columns;
  const row = (<usize>rows) << 2;
  const step = row * <usize>a.heads;
  const z = a.z + row * <usize>h;
  const zLocal = a.zLocal;
  const state = a.state + <usize>packedSize(rows, columns) * <usize>h * 4;
  const pairs = a.pairs;
  const zeros = a.zeros;
  // Rows of v and of the output are used where they are unless a mask or an odd size forbids it.
  const inPlace = a.d == columns;
  const plain = inPlace && a.mask == 0;
  const valueStep = <usize>(a.d * a.tokenStride) * 4;
  let value = rowOf(a, a.v, a.d, n, h);
  let output = rowOf(a, a.output, a.d, n, h);
  let key = a.keys + row * <usize>h;
  let query = a.queries + row * <usize>h;
  const local = a.stateLocal;
  zero(zLocal, rows);
  if (local != 0) {
    zero(local, packedSize(rows, columns));
  }
  for (let t = 0; t < count; t += 2) {
    const both = t + 1 < count;
    const key2 = both ? key + step : zeros;
    const query2 = both ? query + step : zeros;
    const denominators = interleaveAndSum(key, key2, query, query2, pairs, rows, z, zLocal, a.coefficients);
    if (a.normalize) {
      saveInverses(a, n + t, h, both, denominators);
    }
    const v1 = plain ? value : valueRow(a, n + t, h, spareRow(a, 0));
    const v2 = !both ? zeros : plain ? value + valueStep : valueRow(a, n + t + 1, h, spareRow(a, 1));
    const o1 = inPlace ? output : spareRow(a, 2);
    const o2 = inPlace && both ? output + valueStep : spareRow(a, 3);
    if (local != 0) {
      scanPairLong(state, local, pairs, rows, columns, v1, v2, o1, o2, a.coefficients);
    } else {
      scanPairFromZero(state, pairs, pairs + ((<usize>rows) << 4), columns, v1, v2, zeros, o1, o2, a.coefficients);
    }
    if (!inPlace) {
      copy(o1, output, a.d);
      if (both) {
        copy(o2, output + valueStep, a.d);
      }
    }
    key += 2 * step;
    query += 2 * step;
    value += 2 * valueStep;
    output += 2 * valueStep;
  }
  addRow(zLocal, z, rows);
  if (local != 0) {
    addRow(local, state, packedSize(rows, columns));
  }
}

/** Turns two denominators into factors, and saves these. */
@inline
function saveInverses(a: Args, n: i32, h: i32, both: bool, denominators: u64): void {
  const first = inverseOf(reinterpret<f32>(<u32>denominators), a.eps);
  const second = inverseOf(reinterpret<f32>(<u32>(denominators >> 32)), a.eps);
  store<f32>(a.coefficients, first, 0);
  store<f32>(a.coefficients, second, 4);
  const at = rowOf(a, a.inverse, 1, n, h);
  store<f32>(at, first);
  if (both) {
    store<f32>(at + ((<usize>a.tokenStride) << 2), second);
  }
}
