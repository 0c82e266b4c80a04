/** Bias and activation of a fused matrix multiplication, over C in place. */
import {expm14, sigmoid4} from './vector_math';

/** tfjs's own numbers (FusableActivation of its wasm backend). */
const RELU: i32 = 1;
const RELU6: i32 = 2;
const PRELU: i32 = 3;
const LEAKY_RELU: i32 = 4;
const SIGMOID: i32 = 5;
const ELU: i32 = 6;

/**
 * c[m][n] = act(c[m][n] + bias[n]). Strides are 4, or 0 for a single number; `alpha` is leaky relu's slope, `slopes`
 * prelu's. NaN stays NaN in all of them.
 */
export function finish(
  c: usize,
  M: i32,
  N: i32,
  bias: usize,
  biasStride: usize,
  activation: i32,
  alpha: f32,
  slopes: usize,
  slopeStride: usize,
): void {
  for (let m = 0; m < M; m++) {
    let n = 0;
    for (; n + 4 <= N; n += 4) {
      const at = c + ((<usize>n) << 2);
      let x = v128.load(at);
      if (bias != 0) x = f32x4.add(x, four(bias, biasStride, n));
      if (activation != 0) x = activate(x, activation, alpha, slopes, slopeStride, n);
      v128.store(at, x);
    }
    for (; n < N; n++) {
      const at = c + ((<usize>n) << 2);
      let x = v128.load32_splat(at);
      if (bias != 0) x = f32x4.add(x, v128.load32_splat(bias + <usize>n * biasStride));
      if (activation != 0) {
        if (activation == PRELU) {
          x = slope(x, v128.load32_splat(slopes + <usize>n * slopeStride));
        } else {
          x = activate(x, activation, alpha, slopes, slopeStride, n);
        }
      }
      store<f32>(at, f32x4.extract_lane(x, 0));
    }
    c += (<usize>N) << 2;
  }
}

// @ts-ignore: decorator
@inline
function four(at: usize, stride: usize, n: i32): v128 {
  return stride == 0 ? v128.load32_splat(at) : v128.load(at + ((<usize>n) << 2));
}

// @ts-ignore: decorator
@inline
function slope(x: v128, factor: v128): v128 {
  return v128.bitselect(f32x4.mul(x, factor), x, f32x4.lt(x, f32x4.splat(0)));
}

function activate(x: v128, activation: i32, alpha: f32, slopes: usize, slopeStride: usize, n: i32): v128 {
  const zero = f32x4.splat(0);
  switch (activation) {
    case RELU:
      return f32x4.max(x, zero);
    case RELU6:
      return f32x4.min(f32x4.max(x, zero), f32x4.splat(6));
    case PRELU:
      return slope(x, four(slopes, slopeStride, n));
    case LEAKY_RELU:
      return slope(x, f32x4.splat(alpha));
    case SIGMOID:
      return sigmoid4(x);
    case ELU:
      return v128.bitselect(expm14(f32x4.min(x, zero)), x, f32x4.lt(x, zero));
    default:
      return x;
  }
}
