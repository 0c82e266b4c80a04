/**
 * One step of AdamW for n numbers, written to new places: w2 = keep w - rate m2 / (sqrt(v2) + epsilon), with
 * m2 = beta1 m + rest1 g and v2 = beta2 v + rest2 g^2.
 */
export function adamW(
  n: i32,
  w: usize,
  g: usize,
  m: usize,
  v: usize,
  w2: usize,
  m2: usize,
  v2: usize,
  beta1: f32,
  rest1: f32,
  beta2: f32,
  rest2: f32,
  epsilon: f32,
  rate: f32,
  keep: f32,
): void {
  const bytes = (<usize>n) << 2;
  const whole = bytes & ~15;
  for (let i: usize = 0; i < whole; i += 16) {
    const slope = v128.load(g + i);
    const mean = f32x4.add(
      f32x4.mul(v128.load(m + i), f32x4.splat(beta1)),
      f32x4.mul(slope, f32x4.splat(rest1)),
    );
    const square = f32x4.add(
      f32x4.mul(v128.load(v + i), f32x4.splat(beta2)),
      f32x4.mul(f32x4.mul(slope, slope), f32x4.splat(rest2)),
    );
    v128.store(m2 + i, mean);
    v128.store(v2 + i, square);
    const size = f32x4.add(f32x4.sqrt(square), f32x4.splat(epsilon));
    const change = f32x4.mul(f32x4.div(mean, size), f32x4.splat(rate));
    v128.store(w2 + i, f32x4.sub(f32x4.mul(v128.load(w + i), f32x4.splat(keep)), change));
  }
  for (let i = whole; i < bytes; i += 4) {
    const slope = load<f32>(g + i);
    const mean = load<f32>(m + i) * beta1 + slope * rest1;
    const square = load<f32>(v + i) * beta2 + slope * slope * rest2;
    store<f32>(m2 + i, mean);
    store<f32>(v2 + i, square);
    store<f32>(w2 + i, load<f32>(w + i) * keep - (mean / (sqrt<f32>(square) + epsilon)) * rate);
  }
}
