/**
 * gelu(x) = x Phi(x) (Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415), its tanh approximation
 * x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3), and the first derivatives of both, times dy.
 *
 * Constants are loaded from a table in scratch memory: V8 of Node 24 builds inlined ones anew in every turn of the loop,
 * which takes half as long again. NaN in, NaN out: pmin and pmax, one
 * instruction each, give their first operand when it is NaN.
 */

/** Offsets of the constants, each four times. */
const ONE: usize = 0;
const LOWEST: usize = 16;
const LOG2E: usize = 32;
const LN2_HIGH: usize = 48;
const LN2_LOW: usize = 64;
const EXP0: usize = 80;
const EXP1: usize = 96;
const EXP2: usize = 112;
const EXP3: usize = 128;
const EXP4: usize = 144;
const MAGIC: usize = 160;
const MINUS_HALF: usize = 176;
const SLOPE: usize = 192;
const P0: usize = 208;
const P1: usize = 224;
const P2: usize = 240;
const P3: usize = 256;
const P4: usize = 272;
const P5: usize = 288;
const P6: usize = 304;
const P7: usize = 320;
const P8: usize = 336;
const DENSITY: usize = 352;
const LIMIT: usize = 368;
const RATE: usize = 384;
const CUBIC: usize = 400;
const CUBIC3: usize = 416;
const MINUS_LIMIT: usize = 432;
const TABLE_BYTES: usize = 448;

/** Bytes of scratch that both functions need. */
export function geluScratch(): usize {
  return TABLE_BYTES;
}

// @ts-ignore: decorator
@inline
function put(at: usize, value: f32): void {
  v128.store(at, f32x4.splat(value));
}

function fillTable(t: usize): void {
  put(t + ONE, 1);
  // exp: below -87 the result is 0, where it would be 1.6e-38; ln 2 in two parts, so that the subtraction is exact.
  put(t + LOWEST, -87.0);
  put(t + LOG2E, 1.4426950408889634);
  put(t + LN2_HIGH, 0.693359375);
  put(t + LN2_LOW, -2.12194440054690583e-4);
  // exp(r) - 1 - r = r^2 q(r) for |r| <= ln(2) / 2, q by minimax.
  put(t + EXP0, 0.4999999955270738);
  put(t + EXP1, 0.16666577320878187);
  put(t + EXP2, 0.04166685344271145);
  put(t + EXP3, 0.008363140271640158);
  put(t + EXP4, 0.0013901277106476639);
  put(t + MAGIC, 12582912);
  put(t + MINUS_HALF, -0.5);
  // The upper tail of the normal distribution is exp(-z^2 / 2) t P(t), t = 1 / (1 + 0.35 z), P by minimax of the
  // relative error: 3e-8 for z <= 13.5. So Phi keeps its relative accuracy far below 0 too.
  put(t + SLOPE, 0.35);
  put(t + P0, 0.13962156076119925);
  put(t + P1, 0.13985926370945245);
  put(t + P2, 0.11985096438535585);
  put(t + P3, 0.10543931160523703);
  put(t + P4, -0.022953355301454783);
  put(t + P5, 0.1589543047960246);
  put(t + P6, -0.2555275606748091);
  put(t + P7, 0.14388382121202353);
  put(t + P8, -0.029128326387879475);
  // 1 / sqrt(2 pi)
  put(t + DENSITY, 0.3989422804014327);
  // Keeps -Infinity times Phi(-Infinity) = 0 from being NaN; the product is 0 long before.
  put(t + LIMIT, 1e4);
  put(t + MINUS_LIMIT, -1e4);
  // 2 u / x = RATE + CUBIC x^2
  put(t + RATE, 1.5957691216057308);
  put(t + CUBIC, 0.07135481627260025);
  put(t + CUBIC3, 0.21406444881780073);
}

/** y[i] = gelu(x[i]) for n numbers; `tanh`: the approximation. */
export function gelu(x: usize, y: usize, n: i32, tanh: bool, scratch: usize): void {
  fillTable(scratch);
  const end = x + ((<usize>(n & ~3)) << 2);
  if (tanh) {
    for (; x < end; x += 16, y += 16) v128.store(y, tanhForm(v128.load(x), scratch));
  } else {
    for (; x < end; x += 16, y += 16) v128.store(y, exactForm(v128.load(x), scratch));
  }
  for (let i = 0; i < (n & 3); i++) {
    const v = v128.load32_splat(x);
    store<f32>(y, f32x4.extract_lane(tanh ? tanhForm(v, scratch) : exactForm(v, scratch), 0));
    x += 4;
    y += 4;
  }
}

/** dx[i] = dy[i] gelu'(x[i]). */
export function geluGrad(x: usize, dy: usize, dx: usize, n: i32, tanh: bool, scratch: usize): void {
  fillTable(scratch);
  const end = x + ((<usize>(n & ~3)) << 2);
  if (tanh) {
    for (; x < end; x += 16, dy += 16, dx += 16) {
      v128.store(dx, f32x4.mul(v128.load(dy), tanhDerivative(v128.load(x), scratch)));
    }
  } else {
    for (; x < end; x += 16, dy += 16, dx += 16) {
      v128.store(dx, f32x4.mul(v128.load(dy), exactDerivative(v128.load(x), scratch)));
    }
  }
  for (let i = 0; i < (n & 3); i++) {
    const v = v128.load32_splat(x);
    const slope = tanh ? tanhDerivative(v, scratch) : exactDerivative(v, scratch);
    store<f32>(dx, load<f32>(dy) * f32x4.extract_lane(slope, 0));
    x += 4;
    dy += 4;
    dx += 4;
  }
}

/** a + b c */
// @ts-ignore: decorator
@inline
function plus(a: v128, b: v128, c: v128): v128 {
  return f32x4.add(a, f32x4.mul(b, c));
}

/**
 * exp(x) for x <= 0. Relative error 1.2e-7. Adding 1.5 2^23 rounds to a whole number n and leaves n in the low bits,
 * from where a shift moves it into an exponent.
 */
// @ts-ignore: decorator
@inline
function exp(x: v128, t: usize): v128 {
  const clamped = f32x4.pmax(x, v128.load(t, LOWEST));
  const shifted = plus(v128.load(t, MAGIC), clamped, v128.load(t, LOG2E));
  const n = f32x4.sub(shifted, v128.load(t, MAGIC));
  const high = f32x4.sub(clamped, f32x4.mul(n, v128.load(t, LN2_HIGH)));
  const r = f32x4.sub(high, f32x4.mul(n, v128.load(t, LN2_LOW)));
  const r2 = f32x4.mul(r, r);
  const q01 = plus(v128.load(t, EXP0), v128.load(t, EXP1), r);
  const q23 = plus(v128.load(t, EXP2), v128.load(t, EXP3), r);
  const q = plus(q01, plus(q23, v128.load(t, EXP4), r2), r2);
  const one = v128.load(t, ONE);
  const power = i32x4.add(i32x4.shl(shifted, 23), one);
  const value = f32x4.mul(f32x4.add(one, plus(r, r2, q)), power);
  return v128.andnot(value, f32x4.lt(x, v128.load(t, LOWEST)));
}

/** exp(-x^2 / 2). */
// @ts-ignore: decorator
@inline
function gauss(x: v128, t: usize): v128 {
  return exp(f32x4.mul(f32x4.mul(x, x), v128.load(t, MINUS_HALF)), t);
}

/** Phi(x) from e = exp(-x^2 / 2). */
// @ts-ignore: decorator
@inline
function normalCdf(x: v128, e: v128, t: usize): v128 {
  const one = v128.load(t, ONE);
  const s = f32x4.div(one, plus(one, f32x4.abs(x), v128.load(t, SLOPE)));
  const s2 = f32x4.mul(s, s);
  const s4 = f32x4.mul(s2, s2);
  const p01 = plus(v128.load(t, P0), v128.load(t, P1), s);
  const p23 = plus(v128.load(t, P2), v128.load(t, P3), s);
  const p45 = plus(v128.load(t, P4), v128.load(t, P5), s);
  const p67 = plus(v128.load(t, P6), v128.load(t, P7), s);
  const low = plus(p01, p23, s2);
  const high = plus(plus(p45, p67, s2), v128.load(t, P8), s4);
  const tail = f32x4.mul(f32x4.mul(plus(low, high, s4), s), e);
  return v128.bitselect(tail, f32x4.sub(one, tail), f32x4.lt(x, f32x4.splat(0)));
}

// @ts-ignore: decorator
@inline
function exactForm(x: v128, t: usize): v128 {
  return f32x4.mul(clampLow(x, t), normalCdf(x, gauss(x, t), t));
}

/** Phi(x) + x phi(x). */
// @ts-ignore: decorator
@inline
function exactDerivative(x: v128, t: usize): v128 {
  const e = gauss(x, t);
  const density = f32x4.mul(e, v128.load(t, DENSITY));
  return plus(normalCdf(x, e, t), clampBoth(x, t), density);
}

// @ts-ignore: decorator
@inline
function clampLow(x: v128, t: usize): v128 {
  return f32x4.pmax(x, v128.load(t, MINUS_LIMIT));
}

// @ts-ignore: decorator
@inline
function clampBoth(x: v128, t: usize): v128 {
  return f32x4.pmin(clampLow(x, t), v128.load(t, LIMIT));
}

/** exp(-2 |u|) */
// @ts-ignore: decorator
@inline
function decay(x: v128, x2: v128, t: usize): v128 {
  const exponent = f32x4.mul(f32x4.abs(x), plus(v128.load(t, RATE), x2, v128.load(t, CUBIC)));
  return exp(f32x4.neg(exponent), t);
}

// @ts-ignore: decorator
@inline
function tanhForm(x: v128, t: usize): v128 {
  const one = v128.load(t, ONE);
  const e = decay(x, f32x4.mul(x, x), t);
  const numerator = v128.bitselect(e, one, f32x4.lt(x, f32x4.splat(0)));
  return f32x4.div(f32x4.mul(clampLow(x, t), numerator), f32x4.add(one, e));
}

/** s + x s (1 - s) (2 u)', s = sigmoid(2 u). */
// @ts-ignore: decorator
@inline
function tanhDerivative(any: v128, t: usize): v128 {
  const one = v128.load(t, ONE);
  const x = clampBoth(any, t);
  const x2 = f32x4.mul(x, x);
  const e = decay(x, x2, t);
  const inverse = f32x4.div(one, f32x4.add(one, e));
  const s = f32x4.mul(v128.bitselect(e, one, f32x4.lt(x, f32x4.splat(0))), inverse);
  const rate = plus(v128.load(t, RATE), x2, v128.load(t, CUBIC3));
  const bell = f32x4.mul(f32x4.mul(e, inverse), inverse);
  return plus(s, f32x4.mul(x, rate), bell);
}
