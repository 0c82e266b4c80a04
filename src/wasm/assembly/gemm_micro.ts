/** The innermost loop of the matrix product. What V8 makes of it decides the speed of everything above. */
import {PANEL_GAP} from './gemm_pack';
import {added, multiplied} from './multiply_add';

/**
 * Tiles of 4 x 8 of C, one below the other, (+)= packed panels of A times 8 columns of B; k >= 1.
 *
 * AMD's Zen 4 runs a row of a step fastest as load x, multiply, multiply, add, add: 50 GFLOP/s at 3.65 GHz, where
 * multiply, add, multiply, add, behind the step's loads, has 44 (58 is what its two multipliers could do). Two things
 * make V8 emit that order:
 * - V8 from 13 on (Node 24) keeps the order of the source, as long as the compiler keeps it too: this module is compiled
 *   with less optimization than the others, because Binaryen's higher levels nest a product into the sum that uses it.
 * - V8 up to 12 (Node 20 and 22) schedules a block backwards from what uses its results. The only uses of a sum are the
 *   next step's sum and the value after the loop, so that it walks along one accumulator through all steps, and the
 *   loads pile up at the front of each step. `never` is a use at the end of each step, of all sums at once.
 */
export function micro(
  k: i32,
  a: usize,
  b: usize,
  stepB: usize,
  c: usize,
  cRow: usize,
  add: bool,
  tiles: i32,
): void {
  let b0: v128;
  let b1: v128;
  let x: v128;
  let t: v128;
  for (; tiles > 0; tiles--) {
    let c00 = f32x4.splat(0);
    let c01 = c00;
    let c10 = c00;
    let c11 = c00;
    let c20 = c00;
    let c21 = c00;
    let c30 = c00;
    let c31 = c00;
    let row = b;
    const end = a + ((<usize>k) << 4);
    const eights = a + ((<usize>(k & ~7)) << 4);
    while (a != eights) {
      // unroll 8
      b0 = v128.load(row);
      b1 = v128.load(row, 16);
      x = v128.load32_splat(a);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c01 = added(c01, x, b1);
      c00 = added(c00, t, b0);
      x = v128.load32_splat(a, 4);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c11 = added(c11, x, b1);
      c10 = added(c10, t, b0);
      x = v128.load32_splat(a, 8);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c21 = added(c21, x, b1);
      c20 = added(c20, t, b0);
      x = v128.load32_splat(a, 12);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c31 = added(c31, x, b1);
      c30 = added(c30, t, b0);
      a += 16;
      row += stepB;
      if (a == 0) never(c, c00, c01, c10, c11, c20, c21, c30, c31);
      // end
    }
    while (a != end) {
      b0 = v128.load(row);
      b1 = v128.load(row, 16);
      x = v128.load32_splat(a);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c01 = added(c01, x, b1);
      c00 = added(c00, t, b0);
      x = v128.load32_splat(a, 4);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c11 = added(c11, x, b1);
      c10 = added(c10, t, b0);
      x = v128.load32_splat(a, 8);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c21 = added(c21, x, b1);
      c20 = added(c20, t, b0);
      x = v128.load32_splat(a, 12);
      t = multiplied(x, b0);
      x = multiplied(x, b1);
      c31 = added(c31, x, b1);
      c30 = added(c30, t, b0);
      a += 16;
      row += stepB;
    }
    if (add) {
      c00 = f32x4.add(v128.load(c), c00);
      c01 = f32x4.add(v128.load(c, 16), c01);
      c10 = f32x4.add(v128.load(c + cRow), c10);
      c11 = f32x4.add(v128.load(c + cRow, 16), c11);
      c20 = f32x4.add(v128.load(c + 2 * cRow), c20);
      c21 = f32x4.add(v128.load(c + 2 * cRow, 16), c21);
      c30 = f32x4.add(v128.load(c + 3 * cRow), c30);
      c31 = f32x4.add(v128.load(c + 3 * cRow, 16), c31);
    }
    v128.store(c, c00);
    v128.store(c, c01, 16);
    c += cRow;
    v128.store(c, c10);
    v128.store(c, c11, 16);
    c += cRow;
    v128.store(c, c20);
    v128.store(c, c21, 16);
    c += cRow;
    v128.store(c, c30);
    v128.store(c, c31, 16);
    c += cRow;
    a += PANEL_GAP;
  }
}

/**
 * Never called: `a` is an address in the scratch memory. The two sums of a row meet in one operation, which puts their
 * products and then their sums side by side; the negations keep the rows two levels of the tree apart, which keeps the
 * load of one row's x behind the sums of the row before. The call must come back: an exit from the loop would end in
 * values that all exits share, and these lead along one accumulator again.
 */
// @ts-ignore: decorator
@inline
function never(
  at: usize,
  c00: v128,
  c01: v128,
  c10: v128,
  c11: v128,
  c20: v128,
  c21: v128,
  c30: v128,
  c31: v128,
): void {
  let tree = v128.xor(c00, c01);
  tree = v128.xor(v128.xor(c10, c11), v128.not(tree));
  tree = v128.xor(v128.xor(c20, c21), v128.not(tree));
  tree = v128.xor(v128.xor(c30, c31), v128.not(tree));
  v128.store(at, tree);
}
