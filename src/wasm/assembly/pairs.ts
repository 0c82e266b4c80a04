/**
 * Two tokens' rows side by side. The scan reads, for every row i of the state, four numbers in a row of memory: what token 1
 * writes and reads with, and the same of token 2. z and the denominators come along.
 */
import {multiplyAdd} from './multiply_add';

@inline
function writeFour(r0: v128, r1: v128, r2: v128, r3: v128, at: usize): void {
  const a = v128.shuffle<f32>(r0, r1, 0, 4, 1, 5);
  const b = v128.shuffle<f32>(r0, r1, 2, 6, 3, 7);
  const c = v128.shuffle<f32>(r2, r3, 0, 4, 1, 5);
  const d = v128.shuffle<f32>(r2, r3, 2, 6, 3, 7);
  v128.store(at, v128.shuffle<f64>(a, c, 0, 2), 0);
  v128.store(at, v128.shuffle<f64>(a, c, 1, 3), 16);
  v128.store(at, v128.shuffle<f64>(b, d, 0, 2), 32);
  v128.store(at, v128.shuffle<f64>(b, d, 1, 3), 48);
}

/** pairs[i] = [r0[i], r1[i], r2[i], r3[i]] for `rows` numbers of each (a multiple of four). */
export function interleave(r0: usize, r1: usize, r2: usize, r3: usize, pairs: usize, rows: i32): void {
  const end = r0 + ((<usize>rows) << 2);
  for (; r0 < end; r0 += 16, r1 += 16, r2 += 16, r3 += 16, pairs += 64) {
    writeFour(v128.load(r0), v128.load(r1), v128.load(r2), v128.load(r3), pairs);
  }
}

/** One token's two rows side by side: pairs[i] = [r0[i], r1[i]]. */
export function interleaveTwo(r0: usize, r1: usize, pairs: usize, rows: i32): void {
  const end = r0 + ((<usize>rows) << 2);
  for (; r0 < end; r0 += 16, r1 += 16, pairs += 32) {
    const first = v128.load(r0);
    const second = v128.load(r1);
    v128.store(pairs, v128.shuffle<f32>(first, second, 0, 4, 1, 5));
    v128.store(pairs, v128.shuffle<f32>(first, second, 2, 6, 3, 7), 16);
  }
}

/** `interleave`, and the products r1.r0, r3.r0 and r3.r2 into the last three of `coefficients`, see core.ts. */
export function interleaveAndMultiply(
  r0: usize,
  r1: usize,
  r2: usize,
  r3: usize,
  pairs: usize,
  rows: i32,
  coefficients: usize,
): void {
  const end = r0 + ((<usize>rows) << 2);
  let c10 = f32x4.splat(0);
  let c30 = c10;
  let c32 = c10;
  for (; r0 < end; r0 += 16, r1 += 16, r2 += 16, r3 += 16, pairs += 64) {
    const x0 = v128.load(r0);
    const x1 = v128.load(r1);
    const x2 = v128.load(r2);
    const x3 = v128.load(r3);
    c10 = multiplyAdd(c10, x1, x0);
    c30 = multiplyAdd(c30, x3, x0);
    c32 = multiplyAdd(c32, x3, x2);
    writeFour(x0, x1, x2, x3, pairs);
  }
  store<f32>(coefficients, sumLanes(c10), 8);
  store<f32>(coefficients, sumLanes(c30), 12);
  store<f32>(coefficients, sumLanes(c32), 16);
}

/**
 * The same of two tokens' keys and queries. Adds the keys to `zLocal`, and returns the two denominators, each query's
 * product with z + zLocal as it was and with the keys up to its own, in the two halves of a 64-bit number. Sums are kept
 * per block first, so that a long sequence rounds seldom.
 */
export function interleaveAndSum(
  k1: usize,
  k2: usize,
  q1: usize,
  q2: usize,
  pairs: usize,
  rows: i32,
  z: usize,
  zLocal: usize,
  coefficients: usize,
): u64 {
  const end = k1 + ((<usize>rows) << 2);
  let den1 = f32x4.splat(0);
  let den2 = den1;
  let c11 = den1;
  let c21 = den1;
  let c22 = den1;
  for (; k1 < end; k1 += 16, k2 += 16, q1 += 16, q2 += 16, pairs += 64, z += 16, zLocal += 16) {
    const key1 = v128.load(k1);
    const key2 = v128.load(k2);
    const query1 = v128.load(q1);
    const query2 = v128.load(q2);
    const sum = v128.load(zLocal);
    const before = f32x4.add(v128.load(z), sum);
    v128.store(zLocal, f32x4.add(f32x4.add(sum, key1), key2));
    den1 = multiplyAdd(den1, query1, before);
    den2 = multiplyAdd(den2, query2, before);
    c11 = multiplyAdd(c11, query1, key1);
    c21 = multiplyAdd(c21, query2, key1);
    c22 = multiplyAdd(c22, query2, key2);
    writeFour(key1, query1, key2, query2, pairs);
  }
  const own1 = sumLanes(c11);
  const other2 = sumLanes(c21);
  const own2 = sumLanes(c22);
  store<f32>(coefficients, own1, 8);
  store<f32>(coefficients, other2, 12);
  store<f32>(coefficients, own2, 16);
  const first = sumLanes(den1) + own1;
  const second = sumLanes(den2) + (other2 + own2);
  return (<u64>reinterpret<u32>(second) << 32) | <u64>reinterpret<u32>(first);
}

/** o1 = e1 (z + k1), o2 = e2 (z + k1 + k2), and z becomes z + k1 + k2; `count` numbers, a multiple of four. */
export function sumAndScale(
  z: usize,
  k1: usize,
  k2: usize,
  e1: f32,
  e2: f32,
  o1: usize,
  o2: usize,
  count: i32,
): void {
  const end = z + ((<usize>count) << 2);
  const first = f32x4.splat(e1);
  const second = f32x4.splat(e2);
  for (; z < end; z += 16, k1 += 16, k2 += 16, o1 += 16, o2 += 16) {
    const after1 = f32x4.add(v128.load(z), v128.load(k1));
    const after2 = f32x4.add(after1, v128.load(k2));
    v128.store(o1, f32x4.mul(first, after1));
    v128.store(o2, f32x4.mul(second, after2));
    v128.store(z, after2);
  }
}

@inline
export function sumLanes(x: v128): f32 {
  return (
    f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 1) + (f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3))
  );
}

/** The dot product of two rows of `count` numbers (a multiple of four). */
export function dot(x: usize, y: usize, count: i32): f32 {
  const end = x + ((<usize>count) << 2);
  let sum = f32x4.splat(0);
  for (; x < end; x += 16, y += 16) {
    sum = multiplyAdd(sum, v128.load(x), v128.load(y));
  }
  return sumLanes(sum);
}
