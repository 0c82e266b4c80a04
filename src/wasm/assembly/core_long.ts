/**
 * The scan of core.ts for long sequences. A state that is the sum of N terms, each added to all before, is off by about
 * 2e-8 sqrt(N): 5e-6 at N = 65536. Here the terms of one block are summed apart, in `local`, and added to the state when
 * the block ends, so that rounding at the state's size happens once a block. It takes two additions more a row, and both
 * states do not fit into the first-level cache at once: at r = d = 64 a call takes a third longer.
 */
import {added, multiplied, multiplyAdd} from './multiply_add';

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
  let x = v128.load32_splat(coefficients, 8);
  let u0 = f32x4.mul(x, a0);
  let u1 = f32x4.mul(x, a1);
  x = v128.load32_splat(coefficients, 12);
  let w0 = f32x4.mul(x, a0);
  let w1 = f32x4.mul(x, a1);
  x = v128.load32_splat(coefficients, 16);
  w0 = multiplyAdd(w0, x, b0);
  w1 = multiplyAdd(w1, x, b1);
  const end = pairs + ((<usize>rows) << 4) - 16;
  pairs -= 16;
  state -= 128;
  local -= 128;
  let s0: v128, s1: v128, r0: v128, r1: v128, t: v128;
  while (true) {
    state += 128;
    local += 128;
    // unroll 4
    pairs += 16;
    s0 = v128.load(local, 0 /* + 32 */);
    s1 = v128.load(local, 16 /* + 32 */);
    x = v128.load32_splat(pairs);
    t = multiplied(x, a0);
    x = multiplied(x, a1);
    r1 = added(s1, x, a1);
    r0 = added(s0, t, a0);
    x = v128.load32_splat(pairs, 8);
    t = multiplied(x, b0);
    x = multiplied(x, b1);
    r1 = added(r1, x, b1);
    r0 = added(r0, t, b0);
    v128.store(local, r0, 0 /* + 32 */);
    v128.store(local, r1, 16 /* + 32 */);
    s0 = f32x4.add(s0, v128.load(state, 0 /* + 32 */));
    s1 = f32x4.add(s1, v128.load(state, 16 /* + 32 */));
    x = v128.load32_splat(pairs, 4);
    t = multiplied(x, s0);
    x = multiplied(x, s1);
    u1 = added(u1, x, s1);
    u0 = added(u0, t, s0);
    x = v128.load32_splat(pairs, 12);
    t = multiplied(x, s0);
    x = multiplied(x, s1);
    w1 = added(w1, x, s1);
    w0 = added(w0, t, s0);
    if (pairs == 0) break;
    // end
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
  let u = f32x4.mul(v128.load32_splat(coefficients, 8), a);
  let w = f32x4.mul(v128.load32_splat(coefficients, 12), a);
  w = multiplyAdd(w, v128.load32_splat(coefficients, 16), b);
  const end = pairs + ((<usize>rows) << 4);
  for (; pairs < end; pairs += 16, state += 16, local += 16) {
    const s = v128.load(local);
    const total = f32x4.add(s, v128.load(state));
    u = multiplyAdd(u, v128.load32_splat(pairs, 4), total);
    w = multiplyAdd(w, v128.load32_splat(pairs, 12), total);
    const r = multiplyAdd(s, v128.load32_splat(pairs), a);
    v128.store(local, multiplyAdd(r, v128.load32_splat(pairs, 8), b));
  }
  v128.store(o1, f32x4.mul(u, v128.load32_splat(coefficients)));
  v128.store(o2, f32x4.mul(w, v128.load32_splat(coefficients, 4)));
}
