/**
 * gelu(x) = x Phi(x) (Hendrycks and Gimpel 2016, https://arxiv.org/abs/1606.08415), its tanh approximation
 * x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3), and the first derivatives of both, times dy.
 */
import {exp4} from './vector_math';

/** y[i] = gelu(x[i]) for n numbers; `tanh`: the approximation. */
export function gelu(x: usize, y: usize, n: i32, tanh: bool): void {
  const end = x + ((<usize>(n & ~3)) << 2);
  if (tanh) {
    for (; x < end; x += 16, y += 16) v128.store(y, tanhForm(v128.load(x)));
  } else {
    for (; x < end; x += 16, y += 16) v128.store(y, exactForm(v128.load(x)));
  }
  for (let i = 0; i < (n & 3); i++) {
    const v = v128.load32_splat(x);
    store<f32>(y, f32x4.extract_lane(tanh ? tanhForm(v) : exactForm(v), 0));
    x += 4;
    y += 4;
  }
}

/** dx[i] = dy[i] gelu'(x[i]). */
export function geluGrad(x: usize, dy: usize, dx: usize, n: i32, tanh: bool): void {
  const end = x + ((<usize>(n & ~3)) << 2);
  if (tanh) {
    for (; x < end; x += 16, dy += 16, dx += 16) {
      v128.store(dx, f32x4.mul(v128.load(dy), tanhDerivative(v128.load(x))));
    }
  } else {
    for (; x < end; x += 16, dy += 16, dx += 16) {
      v128.store(dx, f32x4.mul(v128.load(dy), exactDerivative(v128.load(x))));
    }
  }
  for (let i = 0; i < (n & 3); i++) {
    const v = v128.load32_splat(x);
    const slope = f32x4.extract_lane(tanh ? tanhDerivative(v) : exactDerivative(v), 0);
    store<f32>(dx, load<f32>(dy) * slope);
    x += 4;
    dy += 4;
    dx += 4;
  }
}

/** exp(-x^2 / 2). */
// @ts-ignore: decorator
@inline
function gauss(x: v128): v128 {
  return exp4(f32x4.mul(f32x4.mul(x, x), f32x4.splat(-0.5)));
}

/**
 * Phi(x) from e = exp(-x^2 / 2): the upper tail is e t P(t) with t = 1 / (1 + 0.35 |x|), P by minimax of the relative
 * error (3e-8 for |x| <= 13.5), so that Phi keeps its relative accuracy far below 0 too.
 */
// @ts-ignore: decorator
@inline
function normalCdf(x: v128, e: v128): v128 {
  const one = f32x4.splat(1);
  const t = f32x4.div(one, f32x4.add(one, f32x4.mul(f32x4.abs(x), f32x4.splat(0.35))));
  let p = f32x4.add(f32x4.mul(f32x4.splat(-0.029128326387879475), t), f32x4.splat(0.14388382121202353));
  p = f32x4.add(f32x4.mul(p, t), f32x4.splat(-0.2555275606748091));
  p = f32x4.add(f32x4.mul(p, t), f32x4.splat(0.1589543047960246));
  p = f32x4.add(f32x4.mul(p, t), f32x4.splat(-0.022953355301454783));
  p = f32x4.add(f32x4.mul(p, t), f32x4.splat(0.10543931160523703));
  p = f32x4.add(f32x4.mul(p, t), f32x4.splat(0.11985096438535585));
  p = f32x4.add(f32x4.mul(p, t), f32x4.splat(0.13985926370945245));
  p = f32x4.add(f32x4.mul(p, t), f32x4.splat(0.13962156076119925));
  const tail = f32x4.mul(f32x4.mul(p, t), e);
  return v128.bitselect(tail, f32x4.sub(one, tail), f32x4.lt(x, f32x4.splat(0)));
}

// @ts-ignore: decorator
@inline
function exactForm(x: v128): v128 {
  return f32x4.mul(clampLow(x), normalCdf(x, gauss(x)));
}

/** Phi(x) + x phi(x). */
// @ts-ignore: decorator
@inline
function exactDerivative(x: v128): v128 {
  const e = gauss(x);
  const density = f32x4.mul(e, f32x4.splat(0.3989422804014327));
  return f32x4.add(normalCdf(x, e), f32x4.mul(clampBoth(x), density));
}

/** Keeps -Infinity times Phi(-Infinity) = 0 from being NaN; the product is 0 in single precision long before. */
// @ts-ignore: decorator
@inline
function clampLow(x: v128): v128 {
  return f32x4.max(x, f32x4.splat(-1e4));
}

// @ts-ignore: decorator
@inline
function clampBoth(x: v128): v128 {
  return f32x4.min(clampLow(x), f32x4.splat(1e4));
}

/** 2 u / x = 2 sqrt(2 / pi) (1 + 0.044715 x^2). */
// @ts-ignore: decorator
@inline
function exponentOverX(x2: v128): v128 {
  return f32x4.add(f32x4.splat(1.5957691216057308), f32x4.mul(x2, f32x4.splat(0.07135481627260025)));
}

// @ts-ignore: decorator
@inline
function tanhForm(x: v128): v128 {
  const one = f32x4.splat(1);
  const e = exp4(f32x4.neg(f32x4.mul(f32x4.abs(x), exponentOverX(f32x4.mul(x, x)))));
  const numerator = v128.bitselect(e, one, f32x4.lt(x, f32x4.splat(0)));
  return f32x4.div(f32x4.mul(clampLow(x), numerator), f32x4.add(one, e));
}

/** s + x s (1 - s) (2 u)', s = sigmoid(2 u). */
// @ts-ignore: decorator
@inline
function tanhDerivative(any: v128): v128 {
  const one = f32x4.splat(1);
  const x = clampBoth(any);
  const x2 = f32x4.mul(x, x);
  const e = exp4(f32x4.neg(f32x4.mul(f32x4.abs(x), exponentOverX(x2))));
  const inverse = f32x4.div(one, f32x4.add(one, e));
  const s = f32x4.mul(v128.bitselect(e, one, f32x4.lt(x, f32x4.splat(0))), inverse);
  const rate = f32x4.add(f32x4.splat(1.5957691216057308), f32x4.mul(x2, f32x4.splat(0.21406444881780074)));
  const bell = f32x4.mul(f32x4.mul(e, inverse), inverse);
  return f32x4.add(s, f32x4.mul(f32x4.mul(x, rate), bell));
}
