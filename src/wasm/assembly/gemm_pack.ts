/**
 * Packing for the micro-kernel: `lanes` rows of A (or columns of B) in panels of `width` (4 or 8). Panel p holds, for
 * each k in turn, the `width` numbers of its lanes; lanes past the end are 0. Strides are in bytes.
 */
export function pack(
  to: usize,
  from: usize,
  laneStride: usize,
  kStride: usize,
  lanes: i32,
  k: i32,
  width: i32,
): void {
  const whole = lanes - (lanes % width);
  if (laneStride == 4) {
    packContiguousLanes(to, from, kStride, whole, k, width);
  } else if (kStride == 4) {
    packContiguousK(to, from, laneStride, whole, k, width);
  } else {
    for (let lane = 0; lane < whole; lane += width) {
      packAny(to + panel(lane, k), from + <usize>lane * laneStride, laneStride, kStride, width, 0, k, width);
    }
  }
  if (whole < lanes) {
    const rest = from + <usize>whole * laneStride;
    packAny(to + panel(whole, k), rest, laneStride, kStride, lanes - whole, 0, k, width);
  }
}

/** Where the panel that starts at a lane begins, in bytes. */
// @ts-ignore: decorator
@inline
function panel(lane: i32, k: i32): usize {
  return (<usize>(lane * k)) << 2;
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
function packContiguousLanes(to: usize, from: usize, kStride: usize, lanes: i32, k: i32, width: i32): void {
  const line = (<usize>width) << 2;
  const panelBytes = line * <usize>k;
  let i = 0;
  for (; i + 4 <= k; i += 4) {
    let source = from + <usize>i * kStride;
    let target = to + <usize>i * line;
    for (let lane = 0; lane < lanes; lane += width) {
      for (let half: usize = 0; half < line; half += 16) {
        const at = source + half;
        const out = target + half;
        v128.store(out, v128.load(at));
        v128.store(out + line, v128.load(at + kStride));
        v128.store(out + 2 * line, v128.load(at + 2 * kStride));
        v128.store(out + 3 * line, v128.load(at + 3 * kStride));
      }
      source += line;
      target += panelBytes;
    }
  }
  for (; i < k; i++) {
    let source = from + <usize>i * kStride;
    let target = to + <usize>i * line;
    for (let lane = 0; lane < lanes; lane += width) {
      for (let half: usize = 0; half < line; half += 16) {
        v128.store(target + half, v128.load(source + half));
      }
      source += line;
      target += panelBytes;
    }
  }
}

/** Transposes 4 x 4 squares in registers. */
function packContiguousK(to: usize, from: usize, laneStride: usize, lanes: i32, k: i32, width: i32): void {
  const line = (<usize>width) << 2;
  const wholeK = k & ~3;
  for (let lane = 0; lane < lanes; lane += width) {
    const start = to + panel(lane, k);
    for (let group = 0; group < width; group += 4) {
      let at = from + <usize>(lane + group) * laneStride;
      let out = start + ((<usize>group) << 2);
      for (let i = 0; i < wholeK; i += 4) {
        const r0 = v128.load(at);
        const r1 = v128.load(at + laneStride);
        const r2 = v128.load(at + 2 * laneStride);
        const r3 = v128.load(at + 3 * laneStride);
        const low01 = i32x4.shuffle(r0, r1, 0, 4, 1, 5);
        const high01 = i32x4.shuffle(r0, r1, 2, 6, 3, 7);
        const low23 = i32x4.shuffle(r2, r3, 0, 4, 1, 5);
        const high23 = i32x4.shuffle(r2, r3, 2, 6, 3, 7);
        v128.store(out, i64x2.shuffle(low01, low23, 0, 2));
        v128.store(out + line, i64x2.shuffle(low01, low23, 1, 3));
        v128.store(out + 2 * line, i64x2.shuffle(high01, high23, 0, 2));
        v128.store(out + 3 * line, i64x2.shuffle(high01, high23, 1, 3));
        at += 16;
        out += 4 * line;
      }
    }
    packAny(start, from + <usize>lane * laneStride, laneStride, 4, width, wholeK, k, width);
  }
}
