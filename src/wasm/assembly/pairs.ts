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

/**
 * `interleave` of two tokens' keys and queries. Adds each key to `zLocal`, and returns the two denominators q.(z + zLocal) in the two
 * halves of a 64-bit number. Sums are kept per block first, so that a long sequence rounds seldom.
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
): u64 {
  const end = k1 + ((<usize>rows) << 2);
  let den1 = f32x4.splat(0);
  let den2 = f32x4.splat(0);
  for (; k1 < end; k1 += 16, k2 += 16, q1 += 16, q2 += 16, pairs += 64, z += 16, zLocal += 16) {
    const key1 = v128.load(k1);
    const key2 = v128.load(k2);
    const query1 = v128.load(q1);
    const query2 = v128.load(q2);
    const base = v128.load(z);
    const after1 = f32x4.add(v128.load(zLocal), key1);
    const after2 = f32x4.add(after1, key2);
    v128.store(zLocal, after2);
    den1 = multiplyAdd(den1, query1, f32x4.add(base, after1));
    den2 = multiplyAdd(den2, query2, f32x4.add(base, after2));
    writeFour(key1, query1, key2, query2, pairs);
  }
  return (<u64>reinterpret<u32>(sumLanes(den2)) << 32) | <u64>reinterpret<u32>(sumLanes(den1));
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
