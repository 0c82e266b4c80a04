/**
 * Packing for the micro-kernel: rows of A (or columns of B) in panels of 4 (or 8) lanes. A panel holds, for each k in
 * turn, one number of each lane; lanes past the end are 0. Strides are in bytes.
 */

/**
 * Bytes between panels. Packing writes a line of every panel in turn: without the gap, panels whose length is a power of
 * two would share a few sets of the first-level cache, and each line would be fetched before it is written.
 */
export const PANEL_GAP: usize = 64;

/** Bytes from one packed panel to the next. */
// @ts-ignore: decorator
@inline
export function panelBytes(width: i32, k: i32): usize {
  return ((<usize>(width * k)) << 2) + PANEL_GAP;
}

/** Packs `lanes` lanes in panels of `width`, 4 or 8. */
export function pack(
  to: usize,
  from: usize,
  laneStride: usize,
  kStride: usize,
  lanes: i32,
  k: i32,
  width: i32,
): void {
  const step = panelBytes(width, k);
  const whole = lanes - (lanes % width);
  if (laneStride == 4) {
    if (width == 4) packContiguousLanes4(to, from, kStride, whole, k);
    else packContiguousLanes8(to, from, kStride, whole, k);
    to += <usize>(whole / width) * step;
  } else {
    let source = from;
    for (let lane = 0; lane < whole; lane += width) {
      let done = 0;
      if (kStride == 4) {
        done = k & ~3;
        const line = (<usize>width) << 2;
        transpose(to, line, source, laneStride, done);
        if (width == 8) transpose(to + 16, line, source + (laneStride << 2), laneStride, done);
      }
      packAny(to, source, laneStride, kStride, width, done, k, width);
      source += <usize>width * laneStride;
      to += step;
    }
  }
  if (whole < lanes) {
    packAny(to, from + <usize>whole * laneStride, laneStride, kStride, lanes - whole, 0, k, width);
  }
}

/** One panel from k = `first` on, number by number. */
function packAny(
  to: usize,
  from: usize,
  laneStride: usize,
  kStride: usize,
  lanes: i32,
  first: i32,
  k: i32,
  width: i32,
): void {
  for (let i = first; i < k; i++) {
    for (let lane = 0; lane < width; lane++) {
      const value = lane < lanes ? load<f32>(from + <usize>lane * laneStride + <usize>i * kStride) : <f32>0;
      store<f32>(to + ((<usize>(i * width + lane)) << 2), value);
    }
  }
}

/** Four k at a time over all panels: whole cache lines are written, and rows a power of two apart do not collide. */
function packContiguousLanes4(to: usize, from: usize, kStride: usize, lanes: i32, k: i32): void {
  const step = panelBytes(4, k);
  const bytes = (<usize>lanes) << 2;
  let i = 0;
  for (; i + 4 <= k; i += 4) {
    let row0 = from;
    let row1 = row0 + kStride;
    let row2 = row1 + kStride;
    let row3 = row2 + kStride;
    let target = to;
    const end = row0 + bytes;
    while (row0 != end) {
      v128.store(target, v128.load(row0));
      v128.store(target, v128.load(row1), 16);
      v128.store(target, v128.load(row2), 32);
      v128.store(target, v128.load(row3), 48);
      row0 += 16;
      row1 += 16;
      row2 += 16;
      row3 += 16;
      target += step;
    }
    from += kStride << 2;
    to += 64;
  }
  for (; i < k; i++) {
    let target = to;
    for (let at: usize = 0; at < bytes; at += 16) {
      v128.store(target, v128.load(from + at));
      target += step;
    }
    from += kStride;
    to += 16;
  }
}

/** The same for panels of eight: two k make a cache line. */
function packContiguousLanes8(to: usize, from: usize, kStride: usize, lanes: i32, k: i32): void {
  const step = panelBytes(8, k);
  const bytes = (<usize>lanes) << 2;
  let i = 0;
  for (; i + 2 <= k; i += 2) {
    let row0 = from;
    let row1 = row0 + kStride;
    let target = to;
    const end = row0 + bytes;
    while (row0 != end) {
      v128.store(target, v128.load(row0));
      v128.store(target, v128.load(row0, 16), 16);
      v128.store(target, v128.load(row1), 32);
      v128.store(target, v128.load(row1, 16), 48);
      row0 += 32;
      row1 += 32;
      target += step;
    }
    from += kStride << 1;
    to += 64;
  }
  if (i < k) {
    let target = to;
    for (let at: usize = 0; at < bytes; at += 32) {
      v128.store(target, v128.load(from + at));
      v128.store(target, v128.load(from + at, 16), 16);
      target += step;
    }
  }
}

/** Four lanes of contiguous k, `k` of them (a multiple of 4): squares of 4 x 4 are transposed in registers. */
function transpose(out: usize, line: usize, from: usize, laneStride: usize, k: i32): void {
  let row1 = from + laneStride;
  let row2 = row1 + laneStride;
  let row3 = row2 + laneStride;
  const end = from + ((<usize>k) << 2);
  while (from != end) {
    const r0 = v128.load(from);
    const r1 = v128.load(row1);
    const r2 = v128.load(row2);
    const r3 = v128.load(row3);
    const low01 = i32x4.shuffle(r0, r1, 0, 4, 1, 5);
    const high01 = i32x4.shuffle(r0, r1, 2, 6, 3, 7);
    const low23 = i32x4.shuffle(r2, r3, 0, 4, 1, 5);
    const high23 = i32x4.shuffle(r2, r3, 2, 6, 3, 7);
    v128.store(out, i64x2.shuffle(low01, low23, 0, 2));
    out += line;
    v128.store(out, i64x2.shuffle(low01, low23, 1, 3));
    out += line;
    v128.store(out, i64x2.shuffle(high01, high23, 0, 2));
    out += line;
    v128.store(out, i64x2.shuffle(high01, high23, 1, 3));
    out += line;
    from += 16;
    row1 += 16;
    row2 += 16;
    row3 += 16;
  }
}
