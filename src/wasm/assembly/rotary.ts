/**
 * y = x cos + swapped(x) sin, `swapped` exchanging the members of each pair: x_i and x_(i + r/2), or x_2i and x_(2i+1)
 * when `interleaved`. x is [B, first, second, r]; row (b, i, j) takes row b batchStep + i firstStep + j secondStep of
 * the tables, which have r numbers each.
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
  interleaved: bool,
): void {
  const bytes = (<usize>r) << 2;
  for (let b = 0; b < B; b++) {
    for (let i = 0; i < first; i++) {
      let angle = <usize>(b * batchStep + i * firstStep) * bytes;
      for (let j = 0; j < second; j++) {
        if (interleaved) {
          neighbours(x, y, cos + angle, sin + angle, bytes);
        } else {
          halves(x, y, cos + angle, sin + angle, bytes);
        }
        x += bytes;
        y += bytes;
        angle += <usize>secondStep * bytes;
      }
    }
  }
}

function halves(x: usize, y: usize, cos: usize, sin: usize, bytes: usize): void {
  const half = bytes >> 1;
  let i: usize = 0;
  for (; i + 16 <= half; i += 16) {
    const one = v128.load(x + i);
    const other = v128.load(x + half + i);
    const turned = f32x4.mul(other, v128.load(sin + i));
    v128.store(y + i, f32x4.add(f32x4.mul(one, v128.load(cos + i)), turned));
    const back = f32x4.mul(one, v128.load(sin + half + i));
    v128.store(y + half + i, f32x4.add(f32x4.mul(other, v128.load(cos + half + i)), back));
  }
  for (; i < half; i += 4) {
    turnPair(x, y, cos, sin, i, half + i);
  }
}

function neighbours(x: usize, y: usize, cos: usize, sin: usize, bytes: usize): void {
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) {
    const pairs = v128.load(x + i);
    const swapped = i32x4.shuffle(pairs, pairs, 1, 0, 3, 2);
    const turned = f32x4.mul(swapped, v128.load(sin + i));
    v128.store(y + i, f32x4.add(f32x4.mul(pairs, v128.load(cos + i)), turned));
  }
  for (; i < bytes; i += 8) {
    turnPair(x, y, cos, sin, i, i + 4);
  }
}

// @ts-ignore: decorator
@inline
function turnPair(x: usize, y: usize, cos: usize, sin: usize, i: usize, j: usize): void {
  const one = load<f32>(x + i);
  const other = load<f32>(x + j);
  store<f32>(y + i, one * load<f32>(cos + i) + other * load<f32>(sin + i));
  store<f32>(y + j, other * load<f32>(cos + j) + one * load<f32>(sin + j));
}
