/** Moving rows between the caller's arrays and scratch, where rows have a multiple of four numbers. */
import {Args} from './args';
import {mapVectors} from './feature_maps';

/** Sets `count` numbers to 0. */
export function zero(at: usize, count: i32): void {
  const end = at + ((<usize>count) << 2);
  for (; at + 16 <= end; at += 16) {
    v128.store(at, f32x4.splat(0));
  }
  for (; at < end; at += 4) {
    store<f32>(at, 0);
  }
}

export function copy(src: usize, dst: usize, count: i32): void {
  const end = src + ((<usize>count) << 2);
  for (; src + 16 <= end; src += 16, dst += 16) {
    v128.store(dst, v128.load(src));
  }
  for (; src < end; src += 4, dst += 4) {
    store<f32>(dst, load<f32>(src));
  }
}

/** dst += src, `count` numbers (a multiple of four). */
export function addRow(src: usize, dst: usize, count: i32): void {
  const end = src + ((<usize>count) << 2);
  for (; src < end; src += 16, dst += 16) {
    v128.store(dst, f32x4.add(v128.load(dst), v128.load(src)));
  }
}

/** dst = base + factor * src, `count` numbers (a multiple of four). dst may be base. */
export function addScaled(base: usize, factor: f32, src: usize, dst: usize, count: i32): void {
  const end = src + ((<usize>count) << 2);
  const f = f32x4.splat(factor);
  for (; src < end; src += 16, dst += 16, base += 16) {
    v128.store(dst, f32x4.add(v128.load(base), f32x4.mul(f, v128.load(src))));
  }
}

/**
 * Brings the rows of tokens n .. n + count into the cache, for all heads in the order of memory. Where heads alternate in
 * memory, one head's rows are far apart and no hardware prefetcher would see them coming, neither for reading nor for
 * writing; nor does it when one head's rows are walked from the last to the first. Worth 3 % at r = 64 and 25 % at r = 32
 * for many heads, and 10 % for one backwards; one head forwards does better without.
 */
export function touchBlock(a: Args, array: usize, size: i32, n: i32, count: i32, backwards: bool = false): void {
  if (a.heads == 1 && !backwards) {
    return;
  }
  const last = rowOf(a, array, size, n + count - 1, 0) + <usize>(a.heads * size - 1) * 4;
  let bits: i32 = 0;
  for (let at = rowOf(a, array, size, n, 0); at < last; at += 64) {
    bits |= load<i32>(at);
  }
  bits |= load<i32>(last);
  pretendToUse(a, bits);
}

/** True where token n counts. */
@inline
export function keeps(a: Args, n: i32): bool {
  return a.mask == 0 || load<f32>(a.mask + ((<usize>n) << 2)) != 0;
}

/** Where row (n, h) of an array with `size` numbers a row begins. */
@inline
export function rowOf(a: Args, array: usize, size: i32, n: i32, h: i32): usize {
  return array + (<usize>(n * a.tokenStride + h) * <usize>size) * 4;
}

/** dst [rows, padded] = map(src [rows, size]), and zeros beyond size. */
function loadRows(src: usize, dst: usize, rows: i32, size: i32, padded: i32, map: i32, table: usize): void {
  if (size == padded) {
    mapVectors(src, dst, (rows * size) >> 2, map, table);
    return;
  }
  for (let i = 0; i < rows; i++) {
    copy(src, dst, size);
    const end = dst + ((<usize>size) << 2);
    zero(end, padded - size);
    mapVectors(dst, dst, padded >> 2, map, table);
    zero(end, padded - size);
    src += (<usize>size) << 2;
    dst += (<usize>padded) << 2;
  }
}

/**
 * dst [count, heads, padded] = map of the tokens n .. n + count of an array whose rows have `size` numbers. Masked
 * tokens are not read: their rows are 0 after the map.
 */
export function loadBlock(
  a: Args,
  src: usize,
  size: i32,
  padded: i32,
  n: i32,
  count: i32,
  map: i32,
  masked: bool,
  dst: usize,
): void {
  const heads = a.heads;
  const useMask = masked && a.mask != 0;
  if (a.tokenStride == heads && !useMask) {
    loadRows(rowOf(a, src, size, n, 0), dst, count * heads, size, padded, map, a.table);
    return;
  }
  const run = <usize>(heads * padded) * 4;
  for (let t = n; t < n + count; t++) {
    if (useMask && !keeps(a, t)) {
      zero(dst, heads * padded);
    } else {
      loadRows(rowOf(a, src, size, t, 0), dst, heads, size, padded, map, a.table);
    }
    dst += run;
  }
}

/** Bytes that are mapped between two touches of loadAndTouch. */
const PIECE: usize = 256;

/**
 * loadBlock of one array and touchBlock of another. Where both blocks lie in one piece and are of one size, the lines of
 * the other are touched while the map computes, which hides most of the wait for them: 3 % of causal attention.
 */
export function loadAndTouch(
  a: Args,
  src: usize,
  size: i32,
  padded: i32,
  n: i32,
  count: i32,
  map: i32,
  masked: bool,
  dst: usize,
  other: usize,
  otherSize: i32,
  backwards: bool = false,
): void {
  const whole = a.tokenStride == a.heads && size == padded && !(masked && a.mask != 0);
  if (!whole || size != otherSize || (a.heads == 1 && !backwards)) {
    loadBlock(a, src, size, padded, n, count, map, masked, dst);
    touchBlock(a, other, otherSize, n, count, backwards);
    return;
  }
  let at = rowOf(a, src, size, n, 0);
  let touched = rowOf(a, other, size, n, 0);
  const end = at + <usize>(count * a.heads * size) * 4;
  let bits: i32 = 0;
  for (; at < end; at += PIECE, touched += PIECE, dst += PIECE) {
    const bytes = min(PIECE, end - at);
    for (let i: usize = 0; i < bytes; i += 64) {
      bits |= load<i32>(touched + i);
    }
    mapVectors(at, dst, <i32>(bytes >> 4), map, a.table);
  }
  pretendToUse(a, bits);
}

/** What is read must seem to matter, or it is not read. */
@inline
function pretendToUse(a: Args, bits: i32): void {
  if (bits == 0x7fffffff) {
    store<i32>(a.spare, bits);
  }
}

/** The inverse of loadBlock with the identity map, for arrays that keep phi(k) between two passes. */
export function storeBlock(a: Args, src: usize, size: i32, padded: i32, n: i32, count: i32, dst: usize): void {
  for (let t = n; t < n + count; t++) {
    for (let h = 0; h < a.heads; h++) {
      copy(src, rowOf(a, dst, size, t, h), size);
      src += (<usize>padded) << 2;
    }
  }
}

/** v of token (n, h) with the mask applied, as a row of `columns` numbers: in place where that is possible. */
export function valueRow(a: Args, n: i32, h: i32, spare: usize): usize {
  if (n >= a.length || !keeps(a, n)) {
    return a.zeros;
  }
  const row = rowOf(a, a.v, a.d, n, h);
  if (a.d == a.columns) {
    return row;
  }
  copy(row, spare, a.d);
  zero(spare + ((<usize>a.d) << 2), a.columns - a.d);
  return spare;
}
