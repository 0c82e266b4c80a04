/**
 * The scan: f(A, B, C; S)_t = a_t . (S + sum_{s <= t} b_s c_s^T), two tokens at a time. It serves forward and backward,
 * because its derivatives have the same form (Katharopoulos et al. 2020, section 3.3; the package's gradient reads the
 * same function in both directions).
 *
 * For a panel of eight columns, both tokens' c and outputs stay in registers while the state's rows stream through:
 * each row is written by token 1, read by token 1, written by token 2, read by token 2: sixteen vector operations for
 * six loads and two stores, and no triangle.
 *
 * V8 moves the loads of a basic block to its front and then runs out of registers, so blocks must stay small: a test
 * that is never true ends each, at next to no cost (28 GFLOP/s without, 39 with; Node 20, 22 and 24 alike).
 */
import {multiplyAdd} from './multiply_add';

/**
 * One panel of eight columns, two tokens. `pairs` as interleave makes them; c, initial outputs, outputs: a row each.
 * The outputs are (initial + a.S) * factor; the factors stay in memory until the loop has given its registers back.
 */
function scanEight(
  state: usize,
  pairs: usize,
  rows: i32,
  c1: usize,
  c2: usize,
  initial1: usize,
  initial2: usize,
  o1: usize,
  o2: usize,
  factors: usize,
): void {
  const a0 = v128.load(c1);
  const a1 = v128.load(c1, 16);
  const b0 = v128.load(c2);
  const b1 = v128.load(c2, 16);
  let u0 = v128.load(initial1);
  let u1 = v128.load(initial1, 16);
  let w0 = v128.load(initial2);
  let w1 = v128.load(initial2, 16);
  const end = pairs + ((<usize>rows) << 4);
  let s0: v128, s1: v128, x: v128;
  while (true) {
    s0 = v128.load(state);
    s1 = v128.load(state, 16);
    x = v128.load32_splat(pairs);
    s0 = multiplyAdd(s0, x, a0);
    s1 = multiplyAdd(s1, x, a1);
    x = v128.load32_splat(pairs, 8);
    u0 = multiplyAdd(u0, x, s0);
    u1 = multiplyAdd(u1, x, s1);
    if (state == 0) break;
    x = v128.load32_splat(pairs, 4);
    s0 = multiplyAdd(s0, x, b0);
    s1 = multiplyAdd(s1, x, b1);
    x = v128.load32_splat(pairs, 12);
    w0 = multiplyAdd(w0, x, s0);
    w1 = multiplyAdd(w1, x, s1);
    v128.store(state, s0);
    v128.store(state, s1, 16);
    state += 32;
    pairs += 16;
    if (pairs >= end) break;
  }
  const factor1 = v128.load32_splat(factors);
  const factor2 = v128.load32_splat(factors, 4);
  v128.store(o1, f32x4.mul(u0, factor1));
  v128.store(o1, f32x4.mul(u1, factor1), 16);
  v128.store(o2, f32x4.mul(w0, factor2));
  v128.store(o2, f32x4.mul(w1, factor2), 16);
}

/** A last panel of four columns. */
function scanFour(
  state: usize,
  pairs: usize,
  rows: i32,
  c1: usize,
  c2: usize,
  initial1: usize,
  initial2: usize,
  o1: usize,
  o2: usize,
  factors: usize,
): void {
  const a = v128.load(c1);
  const b = v128.load(c2);
  let u = v128.load(initial1);
  let w = v128.load(initial2);
  const end = pairs + ((<usize>rows) << 4);
  do {
    const s1 = multiplyAdd(v128.load(state), v128.load32_splat(pairs), a);
    u = multiplyAdd(u, v128.load32_splat(pairs, 8), s1);
    const s2 = multiplyAdd(s1, v128.load32_splat(pairs, 4), b);
    w = multiplyAdd(w, v128.load32_splat(pairs, 12), s2);
    v128.store(state, s2);
    state += 16;
    pairs += 16;
  } while (pairs < end);
  v128.store(o1, f32x4.mul(u, v128.load32_splat(factors)));
  v128.store(o2, f32x4.mul(w, v128.load32_splat(factors, 4)));
}

/** Two tokens through a whole packed state of [rows, columns]. */
export function scanPair(
  state: usize,
  pairs: usize,
  rows: i32,
  columns: i32,
  c1: usize,
  c2: usize,
  initial1: usize,
  initial2: usize,
  o1: usize,
  o2: usize,
  factors: usize,
): void {
  const panel = (<usize>rows) << 5;
  let left = columns;
  for (; left >= 8; left -= 8) {
    scanEight(state, pairs, rows, c1, c2, initial1, initial2, o1, o2, factors);
    state += panel;
    c1 += 32;
    c2 += 32;
    initial1 += 32;
    initial2 += 32;
    o1 += 32;
    o2 += 32;
  }
  if (left > 0) {
    scanFour(state, pairs, rows, c1, c2, initial1, initial2, o1, o2, factors);
  }
}
