/** A vector times a matrix: nothing to pack, the matrix is read once. */

/** c[n] = sum over k of a[k] b[k][n]; rows of b are contiguous, `bRow` bytes apart. */
export function vectorTimesRows(N: i32, K: i32, a: usize, aStride: usize, b: usize, bRow: usize, c: usize): void {
  const end = a + <usize>K * aStride;
  let n = 0;
  for (; n + 32 <= N; n += 32) {
    let s0 = f32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let s4 = s0;
    let s5 = s0;
    let s6 = s0;
    let s7 = s0;
    let at = b + ((<usize>n) << 2);
    for (let from = a; from != end; from += aStride) {
      const x = v128.load32_splat(from);
      s0 = f32x4.add(s0, f32x4.mul(x, v128.load(at)));
      s1 = f32x4.add(s1, f32x4.mul(x, v128.load(at, 16)));
      s2 = f32x4.add(s2, f32x4.mul(x, v128.load(at, 32)));
      s3 = f32x4.add(s3, f32x4.mul(x, v128.load(at, 48)));
      s4 = f32x4.add(s4, f32x4.mul(x, v128.load(at, 64)));
      s5 = f32x4.add(s5, f32x4.mul(x, v128.load(at, 80)));
      s6 = f32x4.add(s6, f32x4.mul(x, v128.load(at, 96)));
      s7 = f32x4.add(s7, f32x4.mul(x, v128.load(at, 112)));
      at += bRow;
    }
    const out = c + ((<usize>n) << 2);
    v128.store(out, s0);
    v128.store(out, s1, 16);
    v128.store(out, s2, 32);
    v128.store(out, s3, 48);
    v128.store(out, s4, 64);
    v128.store(out, s5, 80);
    v128.store(out, s6, 96);
    v128.store(out, s7, 112);
  }
  for (; n + 4 <= N; n += 4) {
    let s = f32x4.splat(0);
    let at = b + ((<usize>n) << 2);
    for (let from = a; from != end; from += aStride) {
      s = f32x4.add(s, f32x4.mul(v128.load32_splat(from), v128.load(at)));
      at += bRow;
    }
    v128.store(c + ((<usize>n) << 2), s);
  }
  for (; n < N; n++) {
    let s: f32 = 0;
    let at = b + ((<usize>n) << 2);
    for (let from = a; from != end; from += aStride) {
      s += load<f32>(from) * load<f32>(at);
      at += bRow;
    }
    store<f32>(c + ((<usize>n) << 2), s);
  }
}

/**
 * The same, four rows of b at a time: each is read from end to end, as memory likes it when rows are long. Adds to c,
 * which must hold 0; K and N are multiples of 4 and 8.
 */
export function vectorTimesLongRows(N: i32, K: i32, a: usize, aStride: usize, b: usize, bRow: usize, c: usize): void {
  for (let k = 0; k < K; k += 4) {
    const x0 = v128.load32_splat(a);
    const x1 = v128.load32_splat(a + aStride);
    const x2 = v128.load32_splat(a + 2 * aStride);
    const x3 = v128.load32_splat(a + 3 * aStride);
    let b0 = b;
    let b1 = b + bRow;
    let b2 = b1 + bRow;
    let b3 = b2 + bRow;
    const end = c + ((<usize>N) << 2);
    for (let at = c; at != end; at += 32) {
      let s0 = f32x4.add(v128.load(at), f32x4.mul(x0, v128.load(b0)));
      let s1 = f32x4.add(v128.load(at, 16), f32x4.mul(x0, v128.load(b0, 16)));
      const t0 = f32x4.add(f32x4.mul(x1, v128.load(b1)), f32x4.mul(x2, v128.load(b2)));
      const t1 = f32x4.add(f32x4.mul(x1, v128.load(b1, 16)), f32x4.mul(x2, v128.load(b2, 16)));
      s0 = f32x4.add(s0, f32x4.mul(x3, v128.load(b3)));
      s1 = f32x4.add(s1, f32x4.mul(x3, v128.load(b3, 16)));
      v128.store(at, f32x4.add(s0, t0));
      v128.store(at, f32x4.add(s1, t1), 16);
      b0 += 32;
      b1 += 32;
      b2 += 32;
      b3 += 32;
    }
    a += 4 * aStride;
    b += 4 * bRow;
  }
}

/** c[n] = sum over k of a[k] b[n][k]; a and the rows of b are contiguous. */
export function dotRows(N: i32, K: i32, a: usize, b: usize, bRow: usize, c: usize): void {
  const whole = (<usize>(K & ~3)) << 2;
  const all = (<usize>K) << 2;
  let n = 0;
  for (; n + 4 <= N; n += 4) {
    let s0 = f32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    const b0 = b + <usize>n * bRow;
    const b1 = b0 + bRow;
    const b2 = b1 + bRow;
    const b3 = b2 + bRow;
    for (let k: usize = 0; k < whole; k += 16) {
      const x = v128.load(a + k);
      s0 = f32x4.add(s0, f32x4.mul(x, v128.load(b0 + k)));
      s1 = f32x4.add(s1, f32x4.mul(x, v128.load(b1 + k)));
      s2 = f32x4.add(s2, f32x4.mul(x, v128.load(b2 + k)));
      s3 = f32x4.add(s3, f32x4.mul(x, v128.load(b3 + k)));
    }
    // Four horizontal sums by a transpose.
    const low01 = i32x4.shuffle(s0, s1, 0, 4, 1, 5);
    const high01 = i32x4.shuffle(s0, s1, 2, 6, 3, 7);
    const low23 = i32x4.shuffle(s2, s3, 0, 4, 1, 5);
    const high23 = i32x4.shuffle(s2, s3, 2, 6, 3, 7);
    let sum = f32x4.add(
      f32x4.add(i64x2.shuffle(low01, low23, 0, 2), i64x2.shuffle(low01, low23, 1, 3)),
      f32x4.add(i64x2.shuffle(high01, high23, 0, 2), i64x2.shuffle(high01, high23, 1, 3)),
    );
    for (let k = whole; k < all; k += 4) {
      const column = f32x4(load<f32>(b0 + k), load<f32>(b1 + k), load<f32>(b2 + k), load<f32>(b3 + k));
      sum = f32x4.add(sum, f32x4.mul(v128.load32_splat(a + k), column));
    }
    v128.store(c + ((<usize>n) << 2), sum);
  }
  for (; n < N; n++) {
    const at = b + <usize>n * bRow;
    let s: f32 = 0;
    for (let k: usize = 0; k < all; k += 4) {
      s += load<f32>(a + k) * load<f32>(at + k);
    }
    store<f32>(c + ((<usize>n) << 2), s);
  }
}
