/**
 * The scan: f(A, B, C; S)_t = a_t . (S + sum_{s <= t} b_s c_s^T), two tokens at a time. It serves forward and backward,
 * because its derivatives have the same form (Katharopoulos et al. 2020, section 3.3; the package's gradient reads the
 * same function in both directions).
 *
 * For a panel of eight columns, both tokens' c and outputs stay in registers while the state's rows stream through. Both
 * tokens read a row as it was before them, and what they add to one another comes from three products of vectors that
 * are known beforehand:
 *
 *     o_1 = a_1 S + (a_1 . b_1) c_1    o_2 = a_2 S + (a_2 . b_1) c_1 + (a_2 . b_2) c_2    S += b_1 c_1^T + b_2 c_2^T
 *
 * so that reading waits for nothing: sixteen vector operations a row for six loads and two stores, in 4.6 cycles on AMD's
 * Zen 4, where four is what its multipliers allow, and 4.3 what the same instructions take in the best order.
 *
 * What V8 makes of the loop decides its speed:
 * - Two products and then two sums run faster than product, sum, product, sum; writing before reading keeps V8 to it.
 * - V8 moves the loads of a basic block to its front and then runs out of registers. A test that is never true ends the
 *   block between two rows.
 * - A round costs a check of the stack and a jump: sixteen rows a round are 2 % faster than eight, and eight 1 % than four.
 * - Pointers are stepped before they are used: one that is stepped afterwards is copied in every round.
 * - `end` is an argument: V8 computes the bound anew in every round when it can.
 * - A splat's offset takes an instruction in every round unless the code before the loop has that offset too: 4, 8 and 12
 *   are there, among the coefficients.
 */
import {added, multiplied, multiplyAdd} from './multiply_add';

/**
 * One panel of eight columns, two tokens; `sixteens` where rows are a multiple of sixteen, `fromZero` where the initial
 * outputs are zeros, which are then not read. `pairs` as interleave makes them, up to `end`; c, initial outputs, outputs:
 * a row each. `coefficients`: what outputs are multiplied by at the end, two numbers, and the products a_1.b_1, a_2.b_1,
 * a_2.b_2; they stay in memory until the loop has given its registers back.
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
  coefficients: usize,
  fromZero: bool,
  sixteens: bool,
): void {
  const a0 = v128.load(c1);
  const a1 = v128.load(c1, 16);
  const b0 = v128.load(c2);
  const b1 = v128.load(c2, 16);
  let x = v128.load32_splat(coefficients, 8);
  let u0 = fromZero ? f32x4.mul(x, a0) : multiplyAdd(v128.load(initial1), x, a0);
  let u1 = fromZero ? f32x4.mul(x, a1) : multiplyAdd(v128.load(initial1, 16), x, a1);
  x = v128.load32_splat(coefficients, 12);
  let w0 = fromZero ? f32x4.mul(x, a0) : multiplyAdd(v128.load(initial2), x, a0);
  let w1 = fromZero ? f32x4.mul(x, a1) : multiplyAdd(v128.load(initial2, 16), x, a1);
  x = v128.load32_splat(coefficients, 16);
  w0 = multiplyAdd(w0, x, b0);
  w1 = multiplyAdd(w1, x, b1);
  pairs -= 16;
  end -= 16;
  let s0: v128, s1: v128, r0: v128, r1: v128, t: v128;
  if (sixteens) {
    state -= 512;
    while (true) {
      state += 512;
      // unroll 16
      pairs += 16;
      s0 = v128.load(state, 0 /* + 32 */);
      s1 = v128.load(state, 16 /* + 32 */);
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
      v128.store(state, r0, 0 /* + 32 */);
      v128.store(state, r1, 16 /* + 32 */);
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
  } else {
    state -= 128;
    while (true) {
      state += 128;
      // unroll 4
      pairs += 16;
      s0 = v128.load(state, 0 /* + 32 */);
      s1 = v128.load(state, 16 /* + 32 */);
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
      v128.store(state, r0, 0 /* + 32 */);
      v128.store(state, r1, 16 /* + 32 */);
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
  }
  const factor1 = v128.load32_splat(coefficients);
  const factor2 = v128.load32_splat(coefficients, 4);
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
  coefficients: usize,
): void {
  const a = v128.load(c1);
  const b = v128.load(c2);
  let u = multiplyAdd(v128.load(initial1), v128.load32_splat(coefficients, 8), a);
  let w = multiplyAdd(v128.load(initial2), v128.load32_splat(coefficients, 12), a);
  w = multiplyAdd(w, v128.load32_splat(coefficients, 16), b);
  do {
    const s = v128.load(state);
    u = multiplyAdd(u, v128.load32_splat(pairs, 4), s);
    w = multiplyAdd(w, v128.load32_splat(pairs, 12), s);
    const r = multiplyAdd(s, v128.load32_splat(pairs), a);
    v128.store(state, multiplyAdd(r, v128.load32_splat(pairs, 8), b));
    state += 16;
    pairs += 16;
  } while (pairs < end);
  v128.store(o1, f32x4.mul(u, v128.load32_splat(coefficients)));
  v128.store(o2, f32x4.mul(w, v128.load32_splat(coefficients, 4)));
}

/**
 * Two tokens through a whole packed state of [rows, columns], rows (a multiple of four) being those of `pairs`, up to `end`.
 * Outputs begin with `initial1` and `initial2`.
 */
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
  coefficients: usize,
): void {
  const panel = (end - pairs) << 1;
  const width = <usize>(columns & ~7) << 2;
  let at: usize = 0;
  for (; at < width; at += 32) {
    const first = initial1 + at;
    const second = initial2 + at;
    if (panel & 511) {
      scanEight(state, pairs, end, c1 + at, c2 + at, first, second, o1 + at, o2 + at, coefficients, false, false);
    } else {
      scanEight(state, pairs, end, c1 + at, c2 + at, first, second, o1 + at, o2 + at, coefficients, false, true);
    }
    state += panel;
  }
  if (columns & 4) {
    const first = initial1 + at;
    const second = initial2 + at;
    scanFour(state, pairs, end, c1 + at, c2 + at, first, second, o1 + at, o2 + at, coefficients);
  }
}

/** scanPair with outputs that begin with zero, as forward has them; `zeros` is a row of zeros. 1 % faster where rows % 16 = 0. */
export function scanPairFromZero(
  state: usize,
  pairs: usize,
  end: usize,
  columns: i32,
  c1: usize,
  c2: usize,
  zeros: usize,
  o1: usize,
  o2: usize,
  coefficients: usize,
): void {
  // Bytes of a panel: 32 a row.
  const panel = (end - pairs) << 1;
  if (panel & 511) {
    scanPair(state, pairs, end, columns, c1, c2, zeros, zeros, o1, o2, coefficients);
    return;
  }
  const width = <usize>(columns & ~7) << 2;
  let at: usize = 0;
  for (; at < width; at += 32) {
    scanEight(state, pairs, end, c1 + at, c2 + at, zeros, zeros, o1 + at, o2 + at, coefficients, true, true);
    state += panel;
  }
  if (columns & 4) {
    scanFour(state, pairs, end, c1 + at, c2 + at, zeros, zeros, o1 + at, o2 + at, coefficients);
  }
}
