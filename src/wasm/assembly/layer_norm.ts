/** Layer normalization of rows: y = gamma (x - mean) / sqrt(var + epsilon) + beta, and its gradient. */

/** Rows whose parameter gradients are added up before they join the totals, which keeps rounding errors small. */
const CHUNK: i32 = 64;

/** The sum of the four lanes. */
// @ts-ignore: decorator
@inline
function total(x: v128): f32 {
  const pairs = f32x4.add(x, i32x4.shuffle(x, x, 2, 3, 0, 1));
  return f32x4.extract_lane(pairs, 0) + f32x4.extract_lane(pairs, 1);
}

function mean(x: usize, D: i32): f32 {
  const bytes = (<usize>D) << 2;
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let i: usize = 0;
  for (; i + 32 <= bytes; i += 32) {
    s0 = f32x4.add(s0, v128.load(x + i));
    s1 = f32x4.add(s1, v128.load(x + i, 16));
  }
  let sum = total(f32x4.add(s0, s1));
  for (; i < bytes; i += 4) {
    sum += load<f32>(x + i);
  }
  return sum / <f32>D;
}

/** 1 / sqrt(var + epsilon). */
function inverseDeviation(x: usize, D: i32, centre: f32, epsilon: f32): f32 {
  const bytes = (<usize>D) << 2;
  const centres = f32x4.splat(centre);
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let i: usize = 0;
  for (; i + 32 <= bytes; i += 32) {
    const c0 = f32x4.sub(v128.load(x + i), centres);
    const c1 = f32x4.sub(v128.load(x + i, 16), centres);
    s0 = f32x4.add(s0, f32x4.mul(c0, c0));
    s1 = f32x4.add(s1, f32x4.mul(c1, c1));
  }
  let sum = total(f32x4.add(s0, s1));
  for (; i < bytes; i += 4) {
    const c = load<f32>(x + i) - centre;
    sum += c * c;
  }
  return <f32>1 / sqrt<f32>(sum / <f32>D + epsilon);
}

export function layerNorm(
  rows: i32,
  D: i32,
  x: usize,
  gamma: usize,
  beta: usize,
  y: usize,
  epsilon: f32,
): void {
  const bytes = (<usize>D) << 2;
  for (let m = 0; m < rows; m++) {
    const centre = mean(x, D);
    const inverse = inverseDeviation(x, D, centre, epsilon);
    const centres = f32x4.splat(centre);
    const inverses = f32x4.splat(inverse);
    let i: usize = 0;
    for (; i + 16 <= bytes; i += 16) {
      const unit = f32x4.mul(f32x4.sub(v128.load(x + i), centres), inverses);
      v128.store(y + i, f32x4.add(f32x4.mul(unit, v128.load(gamma + i)), v128.load(beta + i)));
    }
    for (; i < bytes; i += 4) {
      const unit = (load<f32>(x + i) - centre) * inverse;
      store<f32>(y + i, unit * load<f32>(gamma + i) + load<f32>(beta + i));
    }
    x += bytes;
    y += bytes;
  }
}

/** `scratch` holds 2 D numbers. */
export function layerNormGrad(
  rows: i32,
  D: i32,
  x: usize,
  gamma: usize,
  dy: usize,
  dx: usize,
  dGamma: usize,
  dBeta: usize,
  epsilon: f32,
  scratch: usize,
): void {
  const bytes = (<usize>D) << 2;
  memory.fill(dGamma, 0, bytes);
  memory.fill(dBeta, 0, bytes);
  for (let m = 0; m < rows; m += CHUNK) {
    memory.fill(scratch, 0, 2 * bytes);
    const end = min(rows, m + CHUNK);
    for (let n = m; n < end; n++) {
      gradRow(D, x, gamma, dy, dx, scratch, scratch + bytes, epsilon);
      x += bytes;
      dy += bytes;
      dx += bytes;
    }
    addTo(dGamma, scratch, bytes);
    addTo(dBeta, scratch + bytes, bytes);
  }
}

function addTo(to: usize, from: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += 4) {
    store<f32>(to + i, load<f32>(to + i) + load<f32>(from + i));
  }
}

function gradRow(
  D: i32,
  x: usize,
  gamma: usize,
  dy: usize,
  dx: usize,
  dGamma: usize,
  dBeta: usize,
  epsilon: f32,
): void {
  const bytes = (<usize>D) << 2;
  const centre = mean(x, D);
  const inverse = inverseDeviation(x, D, centre, epsilon);
  const centres = f32x4.splat(centre);
  const inverses = f32x4.splat(inverse);
  let sums = f32x4.splat(0);
  let alongs = sums;
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) {
    const slope = v128.load(dy + i);
    const unit = f32x4.mul(f32x4.sub(v128.load(x + i), centres), inverses);
    const g = f32x4.mul(slope, v128.load(gamma + i));
    sums = f32x4.add(sums, g);
    alongs = f32x4.add(alongs, f32x4.mul(g, unit));
    v128.store(dGamma + i, f32x4.add(v128.load(dGamma + i), f32x4.mul(slope, unit)));
    v128.store(dBeta + i, f32x4.add(v128.load(dBeta + i), slope));
  }
  let sum = total(sums);
  let along = total(alongs);
  for (; i < bytes; i += 4) {
    const slope = load<f32>(dy + i);
    const unit = (load<f32>(x + i) - centre) * inverse;
    const g = slope * load<f32>(gamma + i);
    sum += g;
    along += g * unit;
    store<f32>(dGamma + i, load<f32>(dGamma + i) + slope * unit);
    store<f32>(dBeta + i, load<f32>(dBeta + i) + slope);
  }
  sum /= <f32>D;
  along /= <f32>D;
  const means = f32x4.splat(sum);
  const along4 = f32x4.splat(along);
  for (i = 0; i + 16 <= bytes; i += 16) {
    const unit = f32x4.mul(f32x4.sub(v128.load(x + i), centres), inverses);
    const g = f32x4.mul(v128.load(dy + i), v128.load(gamma + i));
    v128.store(
      dx + i,
      f32x4.mul(inverses, f32x4.sub(f32x4.sub(g, means), f32x4.mul(unit, along4))),
    );
  }
  for (; i < bytes; i += 4) {
    const unit = (load<f32>(x + i) - centre) * inverse;
    const g = load<f32>(dy + i) * load<f32>(gamma + i);
    store<f32>(dx + i, inverse * (g - sum - unit * along));
  }
}
