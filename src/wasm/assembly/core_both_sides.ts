/**
 * One token through a state that is read from both sides, as the gradients of keys and values need it:
 *
 *     S += b c^T,    o = a S,    p = S x
 *
 * Two scans, of S and of its transpose, would write the state twice. Here a row that has just been written is read for
 * o, as in core.ts, and multiplied by x for p: twelve vector operations a row where two scans take sixteen, which makes
 * backward 10 % faster. The row's products with x stay four partial sums in memory until all panels are through.
 *
 * One token at a time: two tokens take more registers than there are, and their spills cost what they save. For the shape
 * of the loop see core.ts.
 */
import {multiplyAdd} from './multiply_add';

// @ts-ignore: decorator
@inline
function eightColumns(
  state: usize,
  pairs: usize,
  end: usize,
  c: usize,
  x: usize,
  o: usize,
  partial: usize,
  sixteens: bool,
): void {
  const c0 = v128.load(c);
  const c1 = v128.load(c, 16);
  const x0 = v128.load(x);
  const x1 = v128.load(x, 16);
  let o0 = f32x4.splat(0);
  let o1 = o0;
  pairs -= 8;
  end -= 8;
  let s0: v128, s1: v128, f: v128, sum: v128;
  if (sixteens) {
    state -= 512;
    partial -= 256;
    while (true) {
      state += 512;
      partial += 256;
      // unroll 16
      pairs += 8;
      s0 = v128.load(state, 0 /* + 32 */);
      s1 = v128.load(state, 16 /* + 32 */);
      f = v128.load32_splat(pairs);
      s0 = multiplyAdd(s0, f, c0);
      s1 = multiplyAdd(s1, f, c1);
      f = v128.load32_splat(pairs, 4);
      o0 = multiplyAdd(o0, f, s0);
      o1 = multiplyAdd(o1, f, s1);
      v128.store(state, s0, 0 /* + 32 */);
      v128.store(state, s1, 16 /* + 32 */);
      sum = multiplyAdd(multiplyAdd(v128.load(partial, 0 /* + 16 */), x0, s0), x1, s1);
      v128.store(partial, sum, 0 /* + 16 */);
      if (pairs == 0) break;
      // end
      if (pairs >= end) break;
    }
  } else {
    state -= 128;
    partial -= 64;
    while (true) {
      state += 128;
      partial += 64;
      // unroll 4
      pairs += 8;
      s0 = v128.load(state, 0 /* + 32 */);
      s1 = v128.load(state, 16 /* + 32 */);
      f = v128.load32_splat(pairs);
      s0 = multiplyAdd(s0, f, c0);
      s1 = multiplyAdd(s1, f, c1);
      f = v128.load32_splat(pairs, 4);
      o0 = multiplyAdd(o0, f, s0);
      o1 = multiplyAdd(o1, f, s1);
      v128.store(state, s0, 0 /* + 32 */);
      v128.store(state, s1, 16 /* + 32 */);
      sum = multiplyAdd(multiplyAdd(v128.load(partial, 0 /* + 16 */), x0, s0), x1, s1);
      v128.store(partial, sum, 0 /* + 16 */);
      if (pairs == 0) break;
      // end
      if (pairs >= end) break;
    }
  }
  v128.store(o, o0);
  v128.store(o, o1, 16);
}

/** A last panel of four columns. */
function fourColumns(
  state: usize,
  pairs: usize,
  end: usize,
  c: usize,
  x: usize,
  o: usize,
  partial: usize,
): void {
  const c0 = v128.load(c);
  const x0 = v128.load(x);
  let o0 = f32x4.splat(0);
  for (; pairs < end; pairs += 8, state += 16, partial += 16) {
    const s = multiplyAdd(v128.load(state), v128.load32_splat(pairs), c0);
    o0 = multiplyAdd(o0, v128.load32_splat(pairs, 4), s);
    v128.store(state, s);
    v128.store(partial, multiplyAdd(v128.load(partial), x0, s));
  }
  v128.store(o, o0);
}

/**
 * A whole packed state [rows, columns], rows being a multiple of four. `pairs` holds b and a side by side for each row
 * (interleaveTwo in pairs.ts), `partial` four numbers a row, which p is added to: see sumPartials.
 */
export function scanBothSides(
  state: usize,
  pairs: usize,
  rows: i32,
  columns: i32,
  c: usize,
  x: usize,
  o: usize,
  partial: usize,
): void {
  const end = pairs + ((<usize>rows) << 3);
  let left = columns;
  for (; left >= 8; left -= 8) {
    if (rows & 15) {
      eightColumns(state, pairs, end, c, x, o, partial, false);
    } else {
      eightColumns(state, pairs, end, c, x, o, partial, true);
    }
    state += (<usize>rows) << 5;
    c += 32;
    x += 32;
    o += 32;
  }
  if (left > 0) {
    fourColumns(state, pairs, end, c, x, o, partial);
  }
}

/** dst[i] = base[i] + the four numbers of row i of `partial`, `rows` (a multiple of four) times. */
export function sumPartials(partial: usize, base: usize, dst: usize, rows: i32): void {
  const end = dst + ((<usize>rows) << 2);
  for (; dst < end; dst += 16, base += 16, partial += 64) {
    const r0 = v128.load(partial);
    const r1 = v128.load(partial, 16);
    const r2 = v128.load(partial, 32);
    const r3 = v128.load(partial, 48);
    const half01 = f32x4.add(v128.shuffle<f32>(r0, r1, 0, 4, 1, 5), v128.shuffle<f32>(r0, r1, 2, 6, 3, 7));
    const half23 = f32x4.add(v128.shuffle<f32>(r2, r3, 0, 4, 1, 5), v128.shuffle<f32>(r2, r3, 2, 6, 3, 7));
    const sums = f32x4.add(v128.shuffle<f64>(half01, half23, 0, 2), v128.shuffle<f64>(half01, half23, 1, 3));
    v128.store(dst, f32x4.add(v128.load(base), sums));
  }
}
