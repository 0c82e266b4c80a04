/**
 * One token: s' = s + phi(k) v^T, z' = z + phi(k), output = phi(q).s' / (phi(q).z' + eps), for `count` (batch, head)
 * pairs that lie one after the other. States are read and written where they are, each number once.
 *
 * phi(q).s' is computed as phi(q).s + (phi(q).phi(k)) v, so that the sums need not wait for the new state: 3 % of a step.
 */
import {mapVectors, TABLE_BYTES, writeTable} from './feature_maps';
import {inverseOf} from './forward';
import {multiplyAdd} from './multiply_add';
import {sumLanes} from './pairs';
import {copy, zero} from './rows';

/** Bytes of scratch for r features: the constants, phi(q) and phi(k) rounded up to whole vectors, and both as pairs. */
export function stepScratch(r: i32): i32 {
  return TABLE_BYTES + 16 * ((r + 3) & ~3);
}

/**
 * Rows of the state that all columns go through before the next ones: neighbouring panels share the cache lines that
 * they end in, because tfjs's arrays begin anywhere. 3 % of a step.
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
  const pairs = key + ((<usize>padded) << 2);
  const width = (<usize>d) << 2;
  for (let i = 0; i < count; i++) {
    mapRow(q, query, r, padded, map, scratch);
    mapRow(k, key, r, padded, map, scratch);
    const products = addKey(key, query, z, newZ, pairs, r);
    const overlap = reinterpret<f32>(<u32>(products >> 32));
    const factor = normalize ? inverseOf(reinterpret<f32>(<u32>products), eps) : scale;
    const wide = d & ~15;
    for (let row = 0; row < r; row += ROWS) {
      const rows = min(ROWS, r - row);
      const from = pairs + ((<usize>row) << 3);
      const at = width * <usize>row;
      const last = row + rows == r ? factor : <f32>1;
      for (let j = 0; j < wide; j += 16) {
        const c = (<usize>j) << 2;
        stepSixteen(from, v + c, s + at + c, newS + at + c, output + c, rows, width, row == 0, overlap, last);
      }
    }
    v += (<usize>wide) << 2;
    s += (<usize>wide) << 2;
    newS += (<usize>wide) << 2;
    output += (<usize>wide) << 2;
    let j = wide;
    for (; j + 4 <= d; j += 4) {
      stepFour(pairs, v, s, newS, output, r, width, overlap, factor);
      v += 16;
      s += 16;
      newS += 16;
      output += 16;
    }
    for (; j < d; j++) {
      stepOne(pairs, v, s, newS, output, r, width, overlap, factor);
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

/** dst [padded] = map(src [r]); what stands beyond r is not read. */
function mapRow(src: usize, dst: usize, r: i32, padded: i32, map: i32, table: usize): void {
  if (r == padded) {
    mapVectors(src, dst, r >> 2, map, table);
    return;
  }
  copy(src, dst, r);
  zero(dst + ((<usize>r) << 2), padded - r);
  mapVectors(dst, dst, padded >> 2, map, table);
}

/**
 * newZ = z + key, and pairs[i] = [key[i], query[i]], from which the loops over the state read. Returns query.newZ, the
 * denominator, and query.key in the two halves of a 64-bit number.
 */
function addKey(key: usize, query: usize, z: usize, newZ: usize, pairs: usize, r: i32): u64 {
  let den = f32x4.splat(0);
  let overlap = f32x4.splat(0);
  const end = key + ((<usize>r) << 2);
  for (; key + 16 <= end; key += 16, query += 16, z += 16, newZ += 16, pairs += 32) {
    const a = v128.load(key);
    const b = v128.load(query);
    const sum = f32x4.add(v128.load(z), a);
    v128.store(newZ, sum);
    v128.store(pairs, v128.shuffle<f32>(a, b, 0, 4, 1, 5));
    v128.store(pairs, v128.shuffle<f32>(a, b, 2, 6, 3, 7), 16);
    den = multiplyAdd(den, b, sum);
    overlap = multiplyAdd(overlap, b, a);
  }
  let total = sumLanes(den);
  let product = sumLanes(overlap);
  for (; key < end; key += 4, query += 4, z += 4, newZ += 4, pairs += 8) {
    const a = load<f32>(key);
    const b = load<f32>(query);
    const sum = load<f32>(z) + a;
    store<f32>(newZ, sum);
    store<f32>(pairs, a);
    store<f32>(pairs, b, 4);
    total += b * sum;
    product += b * a;
  }
  return (<u64>reinterpret<u32>(product) << 32) | <u64>reinterpret<u32>(total);
}

/** Sixteen columns of `rows` rows, `width` bytes apart. The output begins with overlap v, or is added to after the first rows. */
function stepSixteen(
  pairs: usize,
  v: usize,
  s: usize,
  newS: usize,
  output: usize,
  rows: i32,
  width: usize,
  first: bool,
  overlap: f32,
  factor: f32,
): void {
  const v0 = v128.load(v);
  const v1 = v128.load(v, 16);
  const v2 = v128.load(v, 32);
  const v3 = v128.load(v, 48);
  const product = f32x4.splat(overlap);
  let o0 = f32x4.mul(product, v0);
  let o1 = f32x4.mul(product, v1);
  let o2 = f32x4.mul(product, v2);
  let o3 = f32x4.mul(product, v3);
  if (!first) {
    o0 = v128.load(output);
    o1 = v128.load(output, 16);
    o2 = v128.load(output, 32);
    o3 = v128.load(output, 48);
  }
  const end = pairs + ((<usize>rows) << 3);
  while (true) {
    const a = v128.load32_splat(pairs);
    const b = v128.load32_splat(pairs, 4);
    const s0 = v128.load(s);
    const s1 = v128.load(s, 16);
    o0 = multiplyAdd(o0, b, s0);
    o1 = multiplyAdd(o1, b, s1);
    v128.store(newS, multiplyAdd(s0, a, v0));
    v128.store(newS, multiplyAdd(s1, a, v1), 16);
    const s2 = v128.load(s, 32);
    const s3 = v128.load(s, 48);
    o2 = multiplyAdd(o2, b, s2);
    o3 = multiplyAdd(o3, b, s3);
    v128.store(newS, multiplyAdd(s2, a, v2), 32);
    v128.store(newS, multiplyAdd(s3, a, v3), 48);
    s += width;
    newS += width;
    pairs += 8;
    if (pairs >= end) break;
  }
  const f = f32x4.splat(factor);
  v128.store(output, f32x4.mul(o0, f));
  v128.store(output, f32x4.mul(o1, f), 16);
  v128.store(output, f32x4.mul(o2, f), 32);
  v128.store(output, f32x4.mul(o3, f), 48);
}

function stepFour(
  pairs: usize,
  v: usize,
  s: usize,
  newS: usize,
  output: usize,
  r: i32,
  width: usize,
  overlap: f32,
  factor: f32,
): void {
  const value = v128.load(v);
  let o = f32x4.mul(f32x4.splat(overlap), value);
  for (let i = 0; i < r; i++) {
    const x = v128.load(s);
    o = multiplyAdd(o, v128.load32_splat(pairs, 4), x);
    v128.store(newS, multiplyAdd(x, v128.load32_splat(pairs), value));
    s += width;
    newS += width;
    pairs += 8;
  }
  v128.store(output, f32x4.mul(o, f32x4.splat(factor)));
}

function stepOne(
  pairs: usize,
  v: usize,
  s: usize,
  newS: usize,
  output: usize,
  r: i32,
  width: usize,
  overlap: f32,
  factor: f32,
): void {
  const value = load<f32>(v);
  let o = overlap * value;
  for (let i = 0; i < r; i++) {
    const x = load<f32>(s);
    o += load<f32>(pairs, 4) * x;
    store<f32>(newS, x + load<f32>(pairs) * value);
    s += width;
    newS += width;
    pairs += 8;
  }
  store<f32>(output, o * factor);
}
