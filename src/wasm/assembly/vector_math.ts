/** exp and its kin on four floats. NaN in, NaN out: pmax gives its first operand when it is NaN. */

/** exp(x) for x <= 88; 0 below -87, where it would be 1.6e-38. Relative error 1.2e-7. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const clamped = f32x4.pmax(x, f32x4.splat(-87.0));
  const n = f32x4.nearest(f32x4.mul(clamped, f32x4.splat(1.4426950408889634)));
  // ln 2 in two parts, so that the subtraction is exact.
  const high = f32x4.sub(clamped, f32x4.mul(n, f32x4.splat(0.693359375)));
  const r = f32x4.sub(high, f32x4.mul(n, f32x4.splat(-2.12194440054690583e-4)));
  const value = f32x4.mul(f32x4.add(f32x4.splat(1), expm1Reduced(r)), power2(n));
  return v128.andnot(value, f32x4.lt(x, f32x4.splat(-87.0)));
}

/** exp(x) - 1 for x <= 88, without cancellation near 0. */
// @ts-ignore: decorator
@inline
export function expm14(x: v128): v128 {
  const clamped = f32x4.pmax(x, f32x4.splat(-87.0));
  const n = f32x4.nearest(f32x4.mul(clamped, f32x4.splat(1.4426950408889634)));
  const high = f32x4.sub(clamped, f32x4.mul(n, f32x4.splat(0.693359375)));
  const r = f32x4.sub(high, f32x4.mul(n, f32x4.splat(-2.12194440054690583e-4)));
  const scale = power2(n);
  return f32x4.add(f32x4.mul(expm1Reduced(r), scale), f32x4.sub(scale, f32x4.splat(1)));
}

/** exp(r) - 1 for |r| <= ln(2) / 2: r + r^2 q(r), q by minimax. */
// @ts-ignore: decorator
@inline
function expm1Reduced(r: v128): v128 {
  const r2 = f32x4.mul(r, r);
  const q01 = f32x4.add(f32x4.mul(f32x4.splat(0.16666577320878187), r), f32x4.splat(0.4999999955270738));
  const q23 = f32x4.add(f32x4.mul(f32x4.splat(0.008363140271640158), r), f32x4.splat(0.04166685344271145));
  const q = f32x4.add(f32x4.mul(f32x4.add(f32x4.mul(f32x4.splat(0.0013901277106476639), r2), q23), r2), q01);
  return f32x4.add(r, f32x4.mul(r2, q));
}

/** 2^n for whole n from -126 to 127. */
// @ts-ignore: decorator
@inline
function power2(n: v128): v128 {
  return i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
}

/** 1 / (1 + exp(-x)). */
// @ts-ignore: decorator
@inline
export function sigmoid4(x: v128): v128 {
  const one = f32x4.splat(1);
  const e = exp4(f32x4.neg(f32x4.abs(x)));
  const numerator = v128.bitselect(e, one, f32x4.lt(x, f32x4.splat(0)));
  return f32x4.div(numerator, f32x4.add(one, e));
}
