/**
 * One token: s' = s + phi(k) v^T, z' = z + phi(k), output = phi(q).s' / (phi(q).z' + eps), for `count` (batch, head)
 * pairs that lie one after the other. States are read and written where they are, each number once.
 */
import {mapVectors, TABLE_BYTES, writeTable} from './feature_maps';
import {inverseOf} from './forward';
import {multiplyAdd} from './multiply_add';
import {dot} from './pairs';
import {copy, zero} from './rows';

/** Bytes of scratch for r features: the constants, and phi(q), phi(k) and z' rounded up to whole vectors. */
export function stepScratch(r: i32): i32 {
  return TABLE_BYTES + 12 * ((r + 3) & ~3);
}

/**
 * Rows of the state that all columns go through before the next ones: neighbouring panels share the cache lines that
 * they end in, because tfjs's arrays begin anywhere. 7 % of a step.
 */
const ROWS: i32 = 32;

export function step(
  q: usize,
  k: usize,
  v: usize,
  s: usize,
  z: usize,
  output: usize,
  newS: usize,
  newZ: usize,
  count: i32,
  r: i32,
  d: i32,
  map: i32,
  normalize: i32,
  eps: f32,
  scale: f32,
  scratch: usize,
): void {
  writeTable(scratch);
  const padded = (r + 3) & ~3;
  const query = scratch + <usize>TABLE_BYTES;
  const key = query + ((<usize>padded) << 2);
  const sum = key + ((<usize>padded) << 2);
  const width = (<usize>d) << 2;
  for (let i = 0; i < count; i++) {
    mapRow(q, query, r, padded, map, scratch);
    mapRow(k, key, r, padded, map, scratch);
    copy(z, sum, r);
    zero(sum + ((<usize>r) << 2), padded - r);
    for (let at: usize = 0; at < <usize>padded << 2; at += 16) {
      v128.store(sum + at, f32x4.add(v128.load(sum + at), v128.load(key + at)));
    }
    copy(sum, newZ, r);
    const factor = normalize ? inverseOf(dot(query, sum, padded), eps) : scale;
    const wide = d & ~15;
    for (let row = 0; row < r; row += ROWS) {
      const rows = min(ROWS, r - row);
      const k0 = key + ((<usize>row) << 2);
      const q0 = query + ((<usize>row) << 2);
      const at = width * <usize>row;
      const last = row + rows == r ? factor : <f32>1;
      for (let j = 0; j < wide; j += 16) {
        const c = (<usize>j) << 2;
        stepSixteen(k0, q0, v + c, s + at + c, newS + at + c, output + c, rows, width, row == 0, last);
      }
    }
    v += (<usize>wide) << 2;
    s += (<usize>wide) << 2;
    newS += (<usize>wide) << 2;
    output += (<usize>wide) << 2;
    let j = wide;
    for (; j + 4 <= d; j += 4) {
      stepFour(key, query, v, s, newS, output, r, width, factor);
      v += 16;
      s += 16;
      newS += 16;
      output += 16;
    }
    for (; j < d; j++) {
      stepOne(key, query, v, s, newS, output, r, width, factor);
      v += 4;
      s += 4;
      newS += 4;
      output += 4;
    }
    q += (<usize>r) << 2;
    k += (<usize>r) << 2;
    z += (<usize>r) << 2;
    newZ += (<usize>r) << 2;
    // The loops above went through the first row of the state.
    s += width * <usize>(r - 1);
    newS += width * <usize>(r - 1);
  }
}

/** dst [padded] = map(src [r]), zeros beyond. */
function mapRow(src: usize, dst: usize, r: i32, padded: i32, map: i32, table: usize): void {
  copy(src, dst, r);
  const end = dst + ((<usize>r) << 2);
  zero(end, padded - r);
  mapVectors(dst, dst, padded >> 2, map, table);
  zero(end, padded - r);
}

/** Sixteen columns of `rows` rows, `width` bytes apart. The output is added to unless these are the first rows. */
function stepSixteen(
  key: usize,
  query: usize,
  v: usize,
  s: usize,
  newS: usize,
  output: usize,
  rows: i32,
  width: usize,
  first: bool,
  factor: f32,
): void {
  const v0 = v128.load(v);
  const v1 = v128.load(v, 16);
  const v2 = v128.load(v, 32);
  const v3 = v128.load(v, 48);
  let o0 = f32x4.splat(0);
  let o1 = o0;
  let o2 = o0;
  let o3 = o0;
  if (!first) {
    o0 = v128.load(output);
    o1 = v128.load(output, 16);
    o2 = v128.load(output, 32);
    o3 = v128.load(output, 48);
  }
  const end = key + ((<usize>rows) << 2);
  while (true) {
    const a = v128.load32_splat(key);
    const b = v128.load32_splat(query);
    const s0 = multiplyAdd(v128.load(s), a, v0);
    const s1 = multiplyAdd(v128.load(s, 16), a, v1);
    v128.store(newS, s0);
    v128.store(newS, s1, 16);
    o0 = multiplyAdd(o0, b, s0);
    o1 = multiplyAdd(o1, b, s1);
    const s2 = multiplyAdd(v128.load(s, 32), a, v2);
    const s3 = multiplyAdd(v128.load(s, 48), a, v3);
    v128.store(newS, s2, 32);
    v128.store(newS, s3, 48);
    o2 = multiplyAdd(o2, b, s2);
    o3 = multiplyAdd(o3, b, s3);
    s += width;
    newS += width;
    key += 4;
    query += 4;
    if (key >= end) break;
  }
  const f = f32x4.splat(factor);
  v128.store(output, f32x4.mul(o0, f));
  v128.store(output, f32x4.mul(o1, f), 16);
  v128.store(output, f32x4.mul(o2, f), 32);
  v128.store(output, f32x4.mul(o3, f), 48);
}

function stepFour(
  key: usize,
  query: usize,
  v: usize,
  s: usize,
  newS: usize,
  output: usize,
  r: i32,
  width: usize,
  factor: f32,
): void {
  const value = v128.load(v);
  let o = f32x4.splat(0);
  for (let i = 0; i < r; i++) {
    const x = multiplyAdd(v128.load(s), v128.load32_splat(key), value);
    v128.store(newS, x);
    o = multiplyAdd(o, v128.load32_splat(query), x);
    s += width;
    newS += width;
    key += 4;
    query += 4;
  }
  v128.store(output, f32x4.mul(o, f32x4.splat(factor)));
}

function stepOne(
  key: usize,
  query: usize,
  v: usize,
  s: usize,
  newS: usize,
  output: usize,
  r: i32,
  width: usize,
  factor: f32,
): void {
  const value = load<f32>(v);
  let o: f32 = 0;
  for (let i = 0; i < r; i++) {
    const x = load<f32>(s) + load<f32>(key) * value;
    store<f32>(newS, x);
    o += load<f32>(query) * x;
    s += width;
    newS += width;
    key += 4;
    query += 4;
  }
  store<f32>(output, o * factor);
}
