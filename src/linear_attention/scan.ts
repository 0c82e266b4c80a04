/**
 * The core that forward and backward share, in plain JavaScript: the unnormalised product of one head,
 *
 *     causal:      out_t = sum_{s<=t} (a_t.b_s) c_s + a_t^T S0     (s >= t when reversed)
 *     otherwise:   out_t = sum_s      (a_t.b_s) c_s + a_t^T S0
 *     state:       S0 becomes S0 + sum_s b_s c_s^T
 *
 * in einsum notation np,np->nn (masked), nn,nw->nw and np,nw->pw; a and b have width p, c and out width w. The
 * gradients of this product are three more of it (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236,
 * algorithm 1).
 *
 * The state is cut into tiles of 2 rows by 4 columns. A block of tokens runs through one tile after the other, the
 * tile held in local variables: 12 loads and 4 stores for 16 multiply-adds, and the state stored once per block,
 * never once per token. Each token updates before it reads, so there is no triangle. Sums are in double precision.
 */

/** Tokens that run through the tiles together, few enough for their packed operands to stay in the cache. */
const BLOCK = 64;
const ROWS = 2;
const COLUMNS = 4;

/** The rows of one head, one after the other. */
export interface Rows {
  data: Float32Array;
  rows: number;
  width: number;
}

/** Buffers for scans of up to `rows` tokens and operands of up to `width`; one after the other may use them. */
export class Scan {
  private readonly block: number;
  /** [row group][token][a a b b] */
  private readonly left: Float64Array;
  /** [column group][token][c c c c out out out out] */
  private readonly right: Float64Array;
  /** [row group][column group][2 x 4] */
  private readonly tiles: Float64Array;

  constructor(rows: number, width: number) {
    this.block = Math.max(1, Math.min(BLOCK, rows));
    const rowGroups = Math.ceil(width / ROWS);
    const columnGroups = Math.ceil(width / COLUMNS);
    this.left = new Float64Array(rowGroups * this.block * 2 * ROWS);
    this.right = new Float64Array(columnGroups * this.block * 2 * COLUMNS);
    this.tiles = new Float64Array(rowGroups * columnGroups * ROWS * COLUMNS);
  }

  /** Each token of b and c updates `state` [p,w] in place, then a's reads it into out; from the end if `reverse`. */
  causal(a: Rows, b: Rows, c: Rows, out: Float32Array, state: Float64Array, reverse: boolean): void {
    this.load(state, b.width, c.width);
    const blocks = Math.ceil(b.rows / this.block);
    for (let i = 0; i < blocks; i++) {
      const start = (reverse ? blocks - 1 - i : i) * this.block;
      const count = Math.min(this.block, b.rows - start);
      this.packLeft(a, 0, start, count, reverse);
      this.packLeft(b, ROWS, start, count, reverse);
      this.packRight(c, c.width, start, count, reverse);
      this.run(causalTile, b.width, c.width, count);
      this.unpack(out, c.width, start, count, reverse);
    }
    this.store(state, b.width, c.width);
  }

  /** All tokens of b and c update `state` [p,w] in place. */
  update(b: Rows, c: Rows, state: Float64Array): void {
    this.load(state, b.width, c.width);
    for (let start = 0; start < b.rows; start += this.block) {
      const count = Math.min(this.block, b.rows - start);
      this.packLeft(b, ROWS, start, count, false);
      this.packRight(c, c.width, start, count, false);
      this.run(updateTile, b.width, c.width, count);
    }
    this.store(state, b.width, c.width);
  }

  /** All tokens of a read the same `state` [p,width] into out. */
  read(a: Rows, state: Float64Array, out: Float32Array, width: number): void {
    this.load(state, a.width, width);
    for (let start = 0; start < a.rows; start += this.block) {
      const count = Math.min(this.block, a.rows - start);
      this.packLeft(a, 0, start, count, false);
      this.packRight(null, width, start, count, false);
      this.run(readTile, a.width, width, count);
      this.unpack(out, width, start, count, false);
    }
  }

  private run(tile: Tile, p: number, w: number, count: number): void {
    const columnGroups = Math.ceil(w / COLUMNS);
    const rowGroups = Math.ceil(p / ROWS);
    for (let column = 0; column < columnGroups; column++) {
      for (let row = 0; row < rowGroups; row++) {
        const l = row * this.block * 2 * ROWS;
        const r = column * this.block * 2 * COLUMNS;
        const s = (row * columnGroups + column) * ROWS * COLUMNS;
        tile(this.left, this.right, this.tiles, l, r, s, count);
      }
    }
  }

  /** Rows of a (place 0) or b (place 2) into `left`; an odd width is filled up with zeros. */
  private packLeft(x: Rows, place: number, start: number, count: number, reverse: boolean): void {
    const {data, width} = x;
    const {left, block} = this;
    const step = reverse ? -width : width;
    for (let i = 0; i < width; i += ROWS) {
      const pair = i + 1 < width;
      let from = (reverse ? start + count - 1 : start) * width + i;
      let to = i * block * 2 + place;
      for (let t = 0; t < count; t++) {
        left[to] = data[from];
        left[to + 1] = pair ? data[from + 1] : 0;
        from += step;
        to += 2 * ROWS;
      }
    }
  }

  /** Rows of c into `right`, filled up with zeros, and zeros where out will be summed. */
  private packRight(x: Rows | null, width: number, start: number, count: number, reverse: boolean): void {
    const {right, block} = this;
    right.fill(0, 0, Math.ceil(width / COLUMNS) * block * 2 * COLUMNS);
    if (x === null) {
      return;
    }
    const step = reverse ? -width : width;
    for (let j = 0; j < width; j += COLUMNS) {
      const columns = Math.min(COLUMNS, width - j);
      let from = (reverse ? start + count - 1 : start) * width + j;
      let to = j * block * 2;
      for (let t = 0; t < count; t++) {
        for (let c = 0; c < columns; c++) {
          right[to + c] = x.data[from + c];
        }
        from += step;
        to += 2 * COLUMNS;
      }
    }
  }

  private unpack(out: Float32Array, width: number, start: number, count: number, reverse: boolean): void {
    const {right, block} = this;
    const step = reverse ? -width : width;
    for (let j = 0; j < width; j += COLUMNS) {
      const columns = Math.min(COLUMNS, width - j);
      let to = (reverse ? start + count - 1 : start) * width + j;
      let from = j * block * 2 + COLUMNS;
      for (let t = 0; t < count; t++) {
        for (let c = 0; c < columns; c++) {
          out[to + c] = right[from + c];
        }
        to += step;
        from += 2 * COLUMNS;
      }
    }
  }

  /** Between `state` [p,w] and the tiles. */
  private load(state: Float64Array, p: number, w: number): void {
    const rowOfTiles = Math.ceil(w / COLUMNS) * ROWS * COLUMNS;
    this.tiles.fill(0);
    for (let i = 0; i < p; i++) {
      const to = (i >> 1) * rowOfTiles + (i & 1) * COLUMNS;
      for (let j = 0; j < w; j++) {
        this.tiles[to + (j >> 2) * ROWS * COLUMNS + (j & 3)] = state[i * w + j];
      }
    }
  }

  private store(state: Float64Array, p: number, w: number): void {
    const rowOfTiles = Math.ceil(w / COLUMNS) * ROWS * COLUMNS;
    for (let i = 0; i < p; i++) {
      const from = (i >> 1) * rowOfTiles + (i & 1) * COLUMNS;
      for (let j = 0; j < w; j++) {
        state[i * w + j] = this.tiles[from + (j >> 2) * ROWS * COLUMNS + (j & 3)];
      }
    }
  }
}

/** Runs `count` tokens, whose operands start at l and r, through the tile at s. */
type Tile = (
  left: Float64Array,
  right: Float64Array,
  tiles: Float64Array,
  l: number,
  r: number,
  s: number,
  count: number,
) => void;

const causalTile: Tile = (left, right, tiles, l, r, s, count) => {
  let s00 = tiles[s];
  let s01 = tiles[s + 1];
  let s02 = tiles[s + 2];
  let s03 = tiles[s + 3];
  let s10 = tiles[s + 4];
  let s11 = tiles[s + 5];
  let s12 = tiles[s + 6];
  let s13 = tiles[s + 7];
  for (let t = 0; t < count; t++) {
    const b0 = left[l + 2];
    const b1 = left[l + 3];
    const c0 = right[r];
    const c1 = right[r + 1];
    const c2 = right[r + 2];
    const c3 = right[r + 3];
    s00 += b0 * c0;
    s01 += b0 * c1;
    s02 += b0 * c2;
    s03 += b0 * c3;
    s10 += b1 * c0;
    s11 += b1 * c1;
    s12 += b1 * c2;
    s13 += b1 * c3;
    const a0 = left[l];
    const a1 = left[l + 1];
    right[r + 4] += a0 * s00 + a1 * s10;
    right[r + 5] += a0 * s01 + a1 * s11;
    right[r + 6] += a0 * s02 + a1 * s12;
    right[r + 7] += a0 * s03 + a1 * s13;
    l += 4;
    r += 8;
  }
  tiles[s] = s00;
  tiles[s + 1] = s01;
  tiles[s + 2] = s02;
  tiles[s + 3] = s03;
  tiles[s + 4] = s10;
  tiles[s + 5] = s11;
  tiles[s + 6] = s12;
  tiles[s + 7] = s13;
};

const updateTile: Tile = (left, right, tiles, l, r, s, count) => {
  let s00 = tiles[s];
  let s01 = tiles[s + 1];
  let s02 = tiles[s + 2];
  let s03 = tiles[s + 3];
  let s10 = tiles[s + 4];
  let s11 = tiles[s + 5];
  let s12 = tiles[s + 6];
  let s13 = tiles[s + 7];
  for (let t = 0; t < count; t++) {
    const b0 = left[l + 2];
    const b1 = left[l + 3];
    const c0 = right[r];
    const c1 = right[r + 1];
    const c2 = right[r + 2];
    const c3 = right[r + 3];
    s00 += b0 * c0;
    s01 += b0 * c1;
    s02 += b0 * c2;
    s03 += b0 * c3;
    s10 += b1 * c0;
    s11 += b1 * c1;
    s12 += b1 * c2;
    s13 += b1 * c3;
    l += 4;
    r += 8;
  }
  tiles[s] = s00;
  tiles[s + 1] = s01;
  tiles[s + 2] = s02;
  tiles[s + 3] = s03;
  tiles[s + 4] = s10;
  tiles[s + 5] = s11;
  tiles[s + 6] = s12;
  tiles[s + 7] = s13;
};

const readTile: Tile = (left, right, tiles, l, r, s, count) => {
  const s00 = tiles[s];
  const s01 = tiles[s + 1];
  const s02 = tiles[s + 2];
  const s03 = tiles[s + 3];
  const s10 = tiles[s + 4];
  const s11 = tiles[s + 5];
  const s12 = tiles[s + 6];
  const s13 = tiles[s + 7];
  for (let t = 0; t < count; t++) {
    const a0 = left[l];
    const a1 = left[l + 1];
    right[r + 4] += a0 * s00 + a1 * s10;
    right[r + 5] += a0 * s01 + a1 * s11;
    right[r + 6] += a0 * s02 + a1 * s12;
    right[r + 7] += a0 * s03 + a1 * s13;
    l += 4;
    r += 8;
  }
};
