/**
 * Packed states. A state of [rows, columns] is stored in panels of eight columns (four in the last one when columns is
 * not a multiple of eight), each panel row by row: a scan of one panel walks through memory once.
 */

/** Numbers in a packed state. */
@inline
export function packedSize(rows: i32, columns: i32): i32 {
  return rows * columns;
}

/** Where element (i, j) is. */
@inline
function element(state: usize, rows: i32, columns: i32, i: i32, j: i32): usize {
  const panel = j & ~7;
  const width = columns - panel < 8 ? 4 : 8;
  return state + <usize>(panel * rows + i * width + (j - panel)) * 4;
}

/**
 * Packs the r x d matrix whose element (i, j) is src[i * rowStep + j * columnStep], so that a transposed one can be
 * read in place; src = 0 stands for zeros.
 */
export function packState(
  src: usize,
  rowStep: i32,
  columnStep: i32,
  r: i32,
  d: i32,
  dst: usize,
  rows: i32,
  columns: i32,
): void {
  const end = dst + <usize>packedSize(rows, columns) * 4;
  for (let at = dst; at < end; at += 16) {
    v128.store(at, f32x4.splat(0));
  }
  if (src == 0) {
    return;
  }
  for (let i = 0; i < r; i++) {
    let j = 0;
    if (columnStep == 1) {
      for (; j + 4 <= d; j += 4) {
        v128.store(element(dst, rows, columns, i, j), v128.load(src + <usize>(i * rowStep + j) * 4));
      }
    }
    for (; j < d; j++) {
      const value = load<f32>(src + <usize>(i * rowStep + j * columnStep) * 4);
      store<f32>(element(dst, rows, columns, i, j), value);
    }
  }
}

/** dst [r, d] = the packed state. */
export function unpackState(state: usize, rows: i32, columns: i32, r: i32, d: i32, dst: usize): void {
  for (let i = 0; i < r; i++) {
    let j = 0;
    for (; j + 4 <= d; j += 4, dst += 16) {
      v128.store(dst, v128.load(element(state, rows, columns, i, j)));
    }
    for (; j < d; j++, dst += 4) {
      store<f32>(dst, load<f32>(element(state, rows, columns, i, j)));
    }
  }
}

/** dst, packed [columns, rows] = the transpose of a packed state [rows, columns]. */
export function transposeState(state: usize, rows: i32, columns: i32, dst: usize): void {
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      store<f32>(element(dst, columns, rows, j, i), load<f32>(element(state, rows, columns, i, j)));
    }
  }
}
