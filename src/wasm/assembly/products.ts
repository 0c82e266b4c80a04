/**
 * The two products of non-causal attention over packed states: summing outer products into one, and reading it with
 * four rows at a time. Both keep a tile of 4 x 8 sums in registers; why each ends in an untrue test: core.ts.
 */
import {multiplyAdd} from './multiply_add';
import {copy} from './rows';

/** Tokens that are summed at a time: the lines of their rows stay in the first-level cache. */
const RUN: i32 = 64;

/**
 * state += sum_t a_t c_t^T over `count` tokens; a and c advance by aStep and cStep bytes a token. Rows that are far apart
 * are gathered first, because every tile reads them again, and rows at a distance of kilobytes crowd into few sets of
 * the cache. `gathered` has room for 2 RUN rows of max(rows, columns).
 */
export function accumulate(
  state: usize,
  rows: i32,
  columns: i32,
  a: usize,
  aStep: usize,
  c: usize,
  cStep: usize,
  count: i32,
  gathered: usize,
): void {
  const aSize = (<usize>rows) << 2;
  const cSize = (<usize>columns) << 2;
  for (let t = 0; t < count; t += RUN) {
    const run = min(RUN, count - t);
    if (aStep == aSize && cStep == cSize) {
      accumulateRun(state, rows, columns, a, aStep, c, cStep, run);
    } else {
      const second = gathered + aSize * RUN;
      gather(a, aStep, gathered, rows, run);
      gather(c, cStep, second, columns, run);
      accumulateRun(state, rows, columns, gathered, aSize, second, cSize, run);
    }
    a += aStep * RUN;
    c += cStep * RUN;
  }
}

function gather(src: usize, step: usize, dst: usize, size: i32, count: i32): void {
  for (let t = 0; t < count; t++) {
    copy(src, dst, size);
    src += step;
    dst += (<usize>size) << 2;
  }
}

function accumulateRun(
  state: usize,
  rows: i32,
  columns: i32,
  a: usize,
  aStep: usize,
  c: usize,
  cStep: usize,
  count: i32,
): void {
  let left = columns;
  for (; left >= 8; left -= 8) {
    for (let i = 0; i < rows; i += 4) {
      accumulateEight(state, a + ((<usize>i) << 2), aStep, c, cStep, count);
      state += 128;
    }
    c += 32;
  }
  if (left > 0) {
    for (let i = 0; i < rows; i++) {
      const at = a + ((<usize>i) << 2);
      let sum = f32x4.splat(0);
      for (let t = 0; t < count; t++) {
        sum = multiplyAdd(sum, v128.load32_splat(at + <usize>t * aStep), v128.load(c + <usize>t * cStep));
      }
      v128.store(state, f32x4.add(v128.load(state), sum));
      state += 16;
    }
  }
}

function accumulateEight(state: usize, a: usize, aStep: usize, c: usize, cStep: usize, count: i32): void {
  let s00 = f32x4.splat(0);
  let s01 = s00;
  let s10 = s00;
  let s11 = s00;
  let s20 = s00;
  let s21 = s00;
  let s30 = s00;
  let s31 = s00;
  let left = count;
  while (true) {
    const c0 = v128.load(c);
    const c1 = v128.load(c, 16);
    let x = v128.load32_splat(a);
    s00 = multiplyAdd(s00, x, c0);
    s01 = multiplyAdd(s01, x, c1);
    x = v128.load32_splat(a, 4);
    s10 = multiplyAdd(s10, x, c0);
    s11 = multiplyAdd(s11, x, c1);
    x = v128.load32_splat(a, 8);
    s20 = multiplyAdd(s20, x, c0);
    s21 = multiplyAdd(s21, x, c1);
    x = v128.load32_splat(a, 12);
    s30 = multiplyAdd(s30, x, c0);
    s31 = multiplyAdd(s31, x, c1);
    a += aStep;
    c += cStep;
    if (--left == 0) break;
  }
  addTo(state, s00, s01);
  addTo(state + 32, s10, s11);
  addTo(state + 64, s20, s21);
  addTo(state + 96, s30, s31);
}

@inline
function addTo(at: usize, x: v128, y: v128): void {
  v128.store(at, f32x4.add(v128.load(at), x));
  v128.store(at, f32x4.add(v128.load(at, 16), y), 16);
}

/** o_t = (a_t . state) * factor_t for four tokens, whose rows `quads` holds as interleave wrote them. */
export function readFour(
  state: usize,
  rows: i32,
  columns: i32,
  quads: usize,
  o0: usize,
  o1: usize,
  o2: usize,
  o3: usize,
  factors: v128,
): void {
  const f0 = v128.shuffle<f32>(factors, factors, 0, 0, 0, 0);
  const f1 = v128.shuffle<f32>(factors, factors, 1, 1, 1, 1);
  const f2 = v128.shuffle<f32>(factors, factors, 2, 2, 2, 2);
  const f3 = v128.shuffle<f32>(factors, factors, 3, 3, 3, 3);
  const end = quads + ((<usize>rows) << 4);
  let left = columns;
  for (; left >= 8; left -= 8) {
    let u0 = f32x4.splat(0);
    let u1 = u0;
    let v0 = u0;
    let v1 = u0;
    let w0 = u0;
    let w1 = u0;
    let x0 = u0;
    let x1 = u0;
    let at = quads;
    while (true) {
      const s0 = v128.load(state);
      const s1 = v128.load(state, 16);
      let a = v128.load32_splat(at);
      u0 = multiplyAdd(u0, a, s0);
      u1 = multiplyAdd(u1, a, s1);
      a = v128.load32_splat(at, 4);
      v0 = multiplyAdd(v0, a, s0);
      v1 = multiplyAdd(v1, a, s1);
      a = v128.load32_splat(at, 8);
      w0 = multiplyAdd(w0, a, s0);
      w1 = multiplyAdd(w1, a, s1);
      a = v128.load32_splat(at, 12);
      x0 = multiplyAdd(x0, a, s0);
      x1 = multiplyAdd(x1, a, s1);
      state += 32;
      at += 16;
      if (at >= end) break;
    }
    storeEight(o0, u0, u1, f0);
    storeEight(o1, v0, v1, f1);
    storeEight(o2, w0, w1, f2);
    storeEight(o3, x0, x1, f3);
    o0 += 32;
    o1 += 32;
    o2 += 32;
    o3 += 32;
  }
  if (left > 0) {
    let u = f32x4.splat(0);
    let v = u;
    let w = u;
    let x = u;
    for (let at = quads; at < end; at += 16, state += 16) {
      const s = v128.load(state);
      u = multiplyAdd(u, v128.load32_splat(at), s);
      v = multiplyAdd(v, v128.load32_splat(at, 4), s);
      w = multiplyAdd(w, v128.load32_splat(at, 8), s);
      x = multiplyAdd(x, v128.load32_splat(at, 12), s);
    }
    v128.store(o0, f32x4.mul(u, f0));
    v128.store(o1, f32x4.mul(v, f1));
    v128.store(o2, f32x4.mul(w, f2));
    v128.store(o3, f32x4.mul(x, f3));
  }
}

@inline
function storeEight(at: usize, x: v128, y: v128, factor: v128): void {
  v128.store(at, f32x4.mul(x, factor));
  v128.store(at, f32x4.mul(y, factor), 16);
}
