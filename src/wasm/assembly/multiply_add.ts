/**
 * sum + a b. In the relaxed twin of the module it is one instruction that rounds once, where the machine has it: faster,
 * and not the same bits on every machine.
 */
@inline
export function multiplyAdd(sum: v128, a: v128, b: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) {
    return f32x4.relaxed_madd(a, b, sum);
  }
  return f32x4.add(sum, f32x4.mul(a, b));
}

/**
 * multiplyAdd in two halves, for loops that multiply twice and then add twice: added(sum, multiplied(a, b), b). In the
 * relaxed twin the second half does all of it.
 */
@inline
export function multiplied(a: v128, b: v128): v128 {
  return ASC_FEATURE_RELAXED_SIMD ? a : f32x4.mul(a, b);
}

@inline
export function added(sum: v128, half: v128, b: v128): v128 {
  return ASC_FEATURE_RELAXED_SIMD ? f32x4.relaxed_madd(half, b, sum) : f32x4.add(sum, half);
}
