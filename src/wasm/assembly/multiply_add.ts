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
