/**
 * The pointwise feature maps over rows of numbers, and their derivatives. NaN in gives NaN out: pmin and pmax keep
 * their first argument when it is NaN.
 */
import {multiplyAdd} from './multiply_add';

// The order is that of POINTWISE_MAPS in src/pointwise.ts.
const IDENTITY: i32 = 0;
const ELU: i32 = 1;
const RELU: i32 = 2;
const SQUARED_RELU: i32 = 3;

/**
 * Writes the constants of the exponentials. They are read back from memory because V8 builds a vector literal anew at
 * every use, which makes the loops below up to twice as slow.
 */
export function writeTable(table: usize): void {
  store<f32>(table, 1.4426950408889634, 0); // 1 / ln 2
  store<f32>(table, 12582912.0, 4); // adding 1.5 * 2^23 rounds to a whole number
  store<f32>(table, 1.0, 8);
  store<f32>(table, -127.0, 12); // 2^-127 and less come out as 0
  // 2^y on [-1/2, 1/2]: relative error 9.2e-8, exact at 0.
  store<f32>(table, 0.6931469763772637, 16);
  store<f32>(table, 0.24022240451045662, 20);
  store<f32>(table, 0.055507350354502646, 24);
  store<f32>(table, 0.00967161962440307, 28);
  store<f32>(table, 0.0013264591493843344, 32);
  // exp(y) on [-ln 2 / 2, ln 2 / 2]: the same.
  store<f32>(table, 0.9999997050211761, 36);
  store<f32>(table, 0.4999914534865057, 40);
  store<f32>(table, 0.16667640967914274, 44);
  store<f32>(table, 0.04189849896836702, 48);
  store<f32>(table, 0.00829021023645239, 52);
  // ln 2 in two parts, so that n times the first is exact.
  store<f32>(table, 0.693145751953125, 56);
  store<f32>(table, 1.428606765330187e-6, 60);
  // The range of exp in float32, denormal numbers and infinity included.
  store<f32>(table, -104.0, 64);
  store<f32>(table, 89.0, 68);
  store<u32>(table, 0x80000000, 72);
}

/** dst = phi(src), `count` vectors of four. dst may be src. */
export function mapVectors(src: usize, dst: usize, count: i32, map: i32, table: usize): void {
  const end = src + ((<usize>count) << 4);
  if (map == ELU) {
    elu(src, dst, end, table);
  } else if (map == IDENTITY) {
    for (; src < end; src += 16, dst += 16) {
      v128.store(dst, v128.load(src));
    }
  } else if (map == RELU) {
    const zero = f32x4.splat(0);
    for (; src < end; src += 16, dst += 16) {
      v128.store(dst, f32x4.pmax(v128.load(src), zero));
    }
  } else if (map == SQUARED_RELU) {
    const zero = f32x4.splat(0);
    for (; src < end; src += 16, dst += 16) {
      const x = f32x4.pmax(v128.load(src), zero);
      v128.store(dst, f32x4.mul(x, x));
    }
  } else {
    exp(src, dst, end, table);
  }
}

/**
 * x > 0 ? x + 1 : exp(x), as the greater of x + 1 and exp(-|x|): exp(x) >= x + 1 everywhere, and exp(-x) <= 1. There
 * exp(x) = 2^n 2^y, n whole and |y| <= 1/2; n is added to the exponent bits of 2^y. NaN comes from x + 1. From 2^-126 down
 * the result is not exact, and it is 0 from 2^-127 down.
 *
 * One vector's operations follow one another, and the processor overlaps as many vectors as its schedulers hold. In two
 * passes of half the length it holds more of them: 15 % faster.
 */
function elu(src: usize, dst: usize, end: usize, table: usize): void {
  while (src < end) {
    const until = min(src + PASS, end);
    splitExponents(src, until, table);
    finishElu(src, dst, until, table);
    dst += until - src;
    src = until;
  }
}

/** Bytes that go through both passes at a time. */
const PASS: usize = 1024;
/** Where the two passes meet: y and the bits of n. */
const BETWEEN: usize = 128;
/** Bytes of the table and that place. */
export const TABLE_BYTES: i32 = 2176;

function splitExponents(src: usize, end: usize, table: usize): void {
  const sign = v128.load32_splat(table, 72);
  const log2e = v128.load32_splat(table, 0);
  const magic = v128.load32_splat(table, 4);
  const lowest = v128.load32_splat(table, 12);
  for (let to = table + BETWEEN; src < end; src += 16, to += 32) {
    const t = f32x4.pmax(f32x4.mul(v128.or(v128.load(src), sign), log2e), lowest);
    const bits = f32x4.add(t, magic);
    v128.store(to, f32x4.sub(t, f32x4.sub(bits, magic)));
    v128.store(to, i32x4.shl(bits, 23), 16);
  }
}

function finishElu(src: usize, dst: usize, end: usize, table: usize): void {
  const one = v128.load32_splat(table, 8);
  const c1 = v128.load32_splat(table, 16);
  const c2 = v128.load32_splat(table, 20);
  const c3 = v128.load32_splat(table, 24);
  const c4 = v128.load32_splat(table, 28);
  const c5 = v128.load32_splat(table, 32);
  let from = table + BETWEEN;
  const twice = end - 16;
  for (; src < twice; src += 32, dst += 32, from += 64) {
    const y = v128.load(from);
    const z = v128.load(from, 32);
    const yy = f32x4.mul(y, y);
    const zz = f32x4.mul(z, z);
    const py = multiplyAdd(multiplyAdd(one, y, c1), yy, multiplyAdd(multiplyAdd(c2, y, c3), yy, multiplyAdd(c4, y, c5)));
    const pz = multiplyAdd(multiplyAdd(one, z, c1), zz, multiplyAdd(multiplyAdd(c2, z, c3), zz, multiplyAdd(c4, z, c5)));
    v128.store(dst, f32x4.pmax(f32x4.add(v128.load(src), one), i32x4.add(py, v128.load(from, 16))));
    v128.store(dst, f32x4.pmax(f32x4.add(v128.load(src, 16), one), i32x4.add(pz, v128.load(from, 48))), 16);
  }
  if (src < end) {
    const y = v128.load(from);
    const yy = f32x4.mul(y, y);
    const py = multiplyAdd(multiplyAdd(one, y, c1), yy, multiplyAdd(multiplyAdd(c2, y, c3), yy, multiplyAdd(c4, y, c5)));
    v128.store(dst, f32x4.pmax(f32x4.add(v128.load(src), one), i32x4.add(py, v128.load(from, 16))));
  }
}

/** exp(x), over the whole range of float32: the scale 2^n is applied in two halves. */
function exp(src: usize, dst: usize, end: usize, table: usize): void {
  const magic = v128.load32_splat(table, 4);
  const one = v128.load32_splat(table, 8);
  for (; src < end; src += 16, dst += 16) {
    const x = f32x4.pmin(f32x4.pmax(v128.load(src), v128.load32_splat(table, 64)), v128.load32_splat(table, 68));
    const bits = f32x4.add(f32x4.mul(x, v128.load32_splat(table, 0)), magic);
    const n = f32x4.sub(bits, magic);
    const high = f32x4.sub(x, f32x4.mul(n, v128.load32_splat(table, 56)));
    const y = f32x4.sub(high, f32x4.mul(n, v128.load32_splat(table, 60)));
    const yy = f32x4.mul(y, y);
    const first = f32x4.add(one, f32x4.mul(y, v128.load32_splat(table, 36)));
    const second = f32x4.add(v128.load32_splat(table, 40), f32x4.mul(y, v128.load32_splat(table, 44)));
    const third = f32x4.add(v128.load32_splat(table, 48), f32x4.mul(y, v128.load32_splat(table, 52)));
    const p = f32x4.add(first, f32x4.mul(yy, f32x4.add(second, f32x4.mul(yy, third))));
    const whole = i32x4.sub(bits, magic);
    const half = i32x4.shr_s(whole, 1);
    const a = i32x4.add(one, i32x4.shl(half, 23));
    const b = i32x4.add(one, i32x4.shl(i32x4.sub(whole, half), 23));
    v128.store(dst, f32x4.mul(f32x4.mul(p, a), b));
  }
}

/** dst = gradient * phi'(x), where `phi` holds phi(x); `count` vectors of four. dst may be either source. */
export function multiplyDerivative(gradient: usize, phi: usize, dst: usize, count: i32, map: i32): void {
  const one = f32x4.splat(1);
  const zero = f32x4.splat(0);
  const end = dst + ((<usize>count) << 4);
  if (map == ELU) {
    for (; dst < end; dst += 16, gradient += 16, phi += 16) {
      v128.store(dst, f32x4.mul(v128.load(gradient), f32x4.pmin(v128.load(phi), one)));
    }
  } else if (map == RELU) {
    for (; dst < end; dst += 16, gradient += 16, phi += 16) {
      const slope = v128.and(one, f32x4.gt(v128.load(phi), zero));
      v128.store(dst, f32x4.mul(v128.load(gradient), slope));
    }
  } else if (map == SQUARED_RELU) {
    for (; dst < end; dst += 16, gradient += 16, phi += 16) {
      const root = f32x4.sqrt(v128.load(phi));
      v128.store(dst, f32x4.mul(v128.load(gradient), f32x4.add(root, root)));
    }
  } else {
    for (; dst < end; dst += 16, gradient += 16, phi += 16) {
      const slope = map == IDENTITY ? one : v128.load(phi);
      v128.store(dst, f32x4.mul(v128.load(gradient), slope));
    }
  }
}
