/**
 * Turns the pairs (u, v) of every row to (u cos - v sin, u sin + v cos); sin is multiplied by `sign`. Pairs are x_i and
 * x_(i + r/2), or x_2i and x_(2i+1) when `interleaved`. x is [B, first, second, r]; row (b, i, j) takes row
 * b batchStep + i firstStep + j secondStep of the tables, which have r/2 numbers each.
 */
export function rotary(
  B: i32,
  first: i32,
  second: i32,
  r: i32,
  batchStep: i32,
  firstStep: i32,
  secondStep: i32,
  x: usize,
  y: usize,
  cos: usize,
  sin: usize,
  sign: f32,
  interleaved: bool,
): void {
  const half = (<usize>r) << 1;
  for (let b = 0; b < B; b++) {
    for (let i = 0; i < first; i++) {
      let angle = <usize>(b * batchStep + i * firstStep) * half;
      for (let j = 0; j < second; j++) {
        if (interleaved) {
          neighbours(x, y, cos + angle, sin + angle, half, sign);
        } else {
          halves(x, y, cos + angle, sin + angle, half, sign);
        }
        x += 2 * half;
        y += 2 * half;
        angle += <usize>secondStep * half;
      }
    }
  }
}

function halves(x: usize, y: usize, cos: usize, sin: usize, half: usize, sign: f32): void {
  let i: usize = 0;
  for (; i + 16 <= half; i += 16) {
    const u = v128.load(x + i);
    const v = v128.load(x + half + i);
    const c = v128.load(cos + i);
    const s = f32x4.mul(v128.load(sin + i), f32x4.splat(sign));
    v128.store(y + i, f32x4.sub(f32x4.mul(u, c), f32x4.mul(v, s)));
    v128.store(y + half + i, f32x4.add(f32x4.mul(u, s), f32x4.mul(v, c)));
  }
  for (; i < half; i += 4) {
    turn(x + i, x + half + i, y + i, y + half + i, load<f32>(cos + i), load<f32>(sin + i) * sign);
  }
}

function neighbours(x: usize, y: usize, cos: usize, sin: usize, half: usize, sign: f32): void {
  let i: usize = 0;
  // Two pairs: u0 v0 u1 v1 turn by c0 c0 c1 c1 and -s0 s0 -s1 s1.
  const signs = f32x4(-1, 1, -1, 1);
  for (; i + 8 <= half; i += 8) {
    const pairs = v128.load(x + 2 * i);
    const swapped = i32x4.shuffle(pairs, pairs, 1, 0, 3, 2);
    const two = v128.load64_splat(cos + i);
    const sines = f32x4.mul(v128.load64_splat(sin + i), f32x4.splat(sign));
    const c = i32x4.shuffle(two, two, 0, 0, 1, 1);
    const s = f32x4.mul(signs, i32x4.shuffle(sines, sines, 0, 0, 1, 1));
    v128.store(y + 2 * i, f32x4.add(f32x4.mul(pairs, c), f32x4.mul(swapped, s)));
  }
  for (; i < half; i += 4) {
    const at = 2 * i;
    turn(x + at, x + at + 4, y + at, y + at + 4, load<f32>(cos + i), load<f32>(sin + i) * sign);
  }
}

// @ts-ignore: decorator
@inline
function turn(fromU: usize, fromV: usize, toU: usize, toV: usize, c: f32, s: f32): void {
  const u = load<f32>(fromU);
  const v = load<f32>(fromV);
  store<f32>(toU, u * c - v * s);
  store<f32>(toV, u * s + v * c);
}
