/**
 * The scan of core.ts for long sequences. A state that is the sum of N terms, each added to all before, is off by about
 * 2e-8 sqrt(N): 5e-6 at N = 65536. Here the terms of one block are summed apart, in `local`, and added to the state when
 * the block ends, so that rounding at the state's size happens once a block. It takes four additions more a row.
 */
import {multiplyAdd} from './multiply_add';

/** Two tokens through state + local, both packed [rows, columns]; only local changes. Otherwise as scanPair. */
export function scanPairLong(
  state: usize,
  local: usize,
  pairs: usize,
  rows: i32,
  columns: i32,
  c1: usize,
  c2: usize,
  o1: usize,
  o2: usize,
  coefficients: usize,
): void {
  let left = columns;
  for (; left >= 8; left -= 8) {
    scanEight(state, local, pairs, rows, c1, c2, o1, o2, coefficients);
    state += (<usize>rows) << 5;
    local += (<usize>rows) << 5;
    c1 += 32;
    c2 += 32;
    o1 += 32;
    o2 += 32;
  }
  if (left > 0) {
    scanFour(state, local, pairs, rows, c1, c2, o1, o2, coefficients);
  }
}

function scanEight(
  state: usize,
  local: usize,
  pairs: usize,
  rows: i32,
  c1: usize,
  c2: usize,
  o1: usize,
  o2: usize,
  coefficients: usize,
): void {
  const a0 = v128.load(c1);
  const a1 = v128.load(c1, 16);
  const b0 = v128.load(c2);
  const b1 = v128.load(c2, 16);
  let u0 = f32x4.splat(0);
  let u1 = u0;
  let w0 = u0;
  let w1 = u0;
  const end = pairs + ((<usize>rows) << 4);
  while (true) {
    let s0 = v128.load(local);
    let s1 = v128.load(local, 16);
    let x = v128.load32_splat(pairs);
    s0 = multiplyAdd(s0, x, a0);
    s1 = multiplyAdd(s1, x, a1);
    x = v128.load32_splat(pairs, 4);
    u0 = multiplyAdd(u0, x, f32x4.add(s0, v128.load(state)));
    u1 = multiplyAdd(u1, x, f32x4.add(s1, v128.load(state, 16)));
    if (pairs == 0) break;
    x = v128.load32_splat(pairs, 8);
    s0 = multiplyAdd(s0, x, b0);
    s1 = multiplyAdd(s1, x, b1);
    v128.store(local, s0);
    v128.store(local, s1, 16);
    x = v128.load32_splat(pairs, 12);
    w0 = multiplyAdd(w0, x, f32x4.add(s0, v128.load(state)));
    w1 = multiplyAdd(w1, x, f32x4.add(s1, v128.load(state, 16)));
    state += 32;
    local += 32;
    pairs += 16;
    if (pairs >= end) break;
  }
  const factor1 = v128.load32_splat(coefficients);
  const factor2 = v128.load32_splat(coefficients, 4);
  v128.store(o1, f32x4.mul(u0, factor1));
  v128.store(o1, f32x4.mul(u1, factor1), 16);
  v128.store(o2, f32x4.mul(w0, factor2));
  v128.store(o2, f32x4.mul(w1, factor2), 16);
}

function scanFour(
  state: usize,
  local: usize,
  pairs: usize,
  rows: i32,
  c1: usize,
  c2: usize,
  o1: usize,
  o2: usize,
  coefficients: usize,
): void {
  const a = v128.load(c1);
  const b = v128.load(c2);
  let u = f32x4.splat(0);
  let w = u;
  const end = pairs + ((<usize>rows) << 4);
  for (; pairs < end; pairs += 16, state += 16, local += 16) {
    const base = v128.load(state);
    const s1 = multiplyAdd(v128.load(local), v128.load32_splat(pairs), a);
    u = multiplyAdd(u, v128.load32_splat(pairs, 4), f32x4.add(s1, base));
    const s2 = multiplyAdd(s1, v128.load32_splat(pairs, 8), b);
    w = multiplyAdd(w, v128.load32_splat(pairs, 12), f32x4.add(s2, base));
    v128.store(local, s2);
  }
  v128.store(o1, f32x4.mul(u, v128.load32_splat(coefficients)));
  v128.store(o2, f32x4.mul(w, v128.load32_splat(coefficients, 4)));
}
