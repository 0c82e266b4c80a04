/**
 * The scan: f(A, B, C; S)_t = a_t . (S + sum_{s <= t} b_s c_s^T), two tokens at a time. It serves forward and backward,
 * because its derivatives have the same form (Katharopoulos et al. 2020, section 3.3; the package's gradient reads the
 * same function in both directions).
 *
 * For a panel of eight columns, both tokens' c and outputs stay in registers while the state's rows stream through:
 * each row is written by token 1, read by token 1, written by token 2, read by token 2: sixteen vector operations for
 * six loads and two stores, and no triangle.
 *
 * What V8 makes of the loop decides its speed; 42 GFLOP/s on Node 20 and 22 and 43 on Node 24, where the plain loop has
 * 37 to 41 and the micro-kernel of a matrix product 44 to 47:
 * - V8 moves the loads of a basic block to its front and then runs out of registers. A test that is never true ends the
 *   block between two rows.
 * - Pointers are stepped before they are used: one that is stepped afterwards is copied in every round.
 * - `end` is an argument: V8 computes the bound anew in every round when it can.
 * - A splat's offset takes an instruction unless the first block has it too: offsets are 0 and 4.
 */
import {multiplyAdd} from './multiply_add';

/**
 * One panel of eight columns, two tokens, two rows a round. `pairs` as interleave makes them, up to `end`; c, initial
 * outputs, outputs: a row each. The outputs are (initial + a.S) * factor; the factors stay in memory until the loop has
 * given its registers back.
 */
// @ts-ignore: decorator
@inline
function scanEight(
  state: usize,
  pairs: usize,
  end: usize,
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
  state -= 64;
  pairs -= 8;
  end -= 8;
  let s0: v128, s1: v128, x: v128;
  while (true) {
    state += 64;
    pairs += 8;
    s0 = v128.load(state);
    s1 = v128.load(state, 16);
    x = v128.load32_splat(pairs);
    s0 = multiplyAdd(s0, x, a0);
    s1 = multiplyAdd(s1, x, a1);
    x = v128.load32_splat(pairs, 4);
    u0 = multiplyAdd(u0, x, s0);
    u1 = multiplyAdd(u1, x, s1);
    pairs += 8;
    x = v128.load32_splat(pairs);
    s0 = multiplyAdd(s0, x, b0);
    s1 = multiplyAdd(s1, x, b1);
    x = v128.load32_splat(pairs, 4);
    w0 = multiplyAdd(w0, x, s0);
    w1 = multiplyAdd(w1, x, s1);
    v128.store(state, s0);
    v128.store(state, s1, 16);
    if (pairs == 0) break;
    pairs += 8;
    s0 = v128.load(state, 32);
    s1 = v128.load(state, 48);
    x = v128.load32_splat(pairs);
    s0 = multiplyAdd(s0, x, a0);
    s1 = multiplyAdd(s1, x, a1);
    x = v128.load32_splat(pairs, 4);
    u0 = multiplyAdd(u0, x, s0);
    u1 = multiplyAdd(u1, x, s1);
    pairs += 8;
    x = v128.load32_splat(pairs);
    s0 = multiplyAdd(s0, x, b0);
    s1 = multiplyAdd(s1, x, b1);
    x = v128.load32_splat(pairs, 4);
    w0 = multiplyAdd(w0, x, s0);
    w1 = multiplyAdd(w1, x, s1);
    v128.store(state, s0, 32);
    v128.store(state, s1, 48);
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
  end: usize,
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
  do {
    const s1 = multiplyAdd(v128.load(state), v128.load32_splat(pairs), a);
    u = multiplyAdd(u, v128.load32_splat(pairs, 4), s1);
    const s2 = multiplyAdd(s1, v128.load32_splat(pairs, 8), b);
    w = multiplyAdd(w, v128.load32_splat(pairs, 12), s2);
    v128.store(state, s2);
    state += 16;
    pairs += 16;
  } while (pairs < end);
  v128.store(o1, f32x4.mul(u, v128.load32_splat(factors)));
  v128.store(o2, f32x4.mul(w, v128.load32_splat(factors, 4)));
}

/** Two tokens through a whole packed state of [rows, columns], rows being those of `pairs`, up to `end`. */
export function scanPair(
  state: usize,
  pairs: usize,
  end: usize,
  columns: i32,
  c1: usize,
  c2: usize,
  initial1: usize,
  initial2: usize,
  o1: usize,
  o2: usize,
  factors: usize,
): void {
  const panel = (end - pairs) << 1;
  let left = columns;
  for (; left >= 8; left -= 8) {
    scanEight(state, pairs, end, c1, c2, initial1, initial2, o1, o2, factors);
    state += panel;
    c1 += 32;
    c2 += 32;
    initial1 += 32;
    initial2 += 32;
    o1 += 32;
    o2 += 32;
  }
  if (left > 0) {
    scanFour(state, pairs, end, c1, c2, initial1, initial2, o1, o2, factors);
  }
}
