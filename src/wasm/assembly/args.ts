/**
 * What one call works on: some heads of one batch entry, and a range of its tokens. Filled in by
 * src/linear_attention/simd_arguments.ts, which lists the same fields in the same order.
 *
 * Row (n, h) of q, k, v and of everything shaped like them is row n * tokenStride + h of its array, from the pointer
 * that is given here: BNHD has tokenStride = H and any number of heads a call; BHND has tokenStride 1 and one head.
 * `r` and `d` are the sizes in memory; `rows` (r) and `columns` (d) are the same rounded up to multiples of 4, the
 * sizes of everything in scratch. What is added by rounding is always 0.
 */
@unmanaged
export class Args {
  heads: i32;
  length: i32;
  /** Tokens that are mapped at a time. Even. */
  block: i32;
  tokenStride: i32;
  r: i32;
  d: i32;
  rows: i32;
  columns: i32;
  map: i32;
  normalize: i32;
  eps: f32;
  scale: f32;

  q: usize;
  k: usize;
  v: usize;
  /** 1 keeps, 0 drops; one value a token. 0 when there is no mask. */
  mask: usize;
  output: usize;
  inverse: usize;
  dOutput: usize;
  dq: usize;
  dk: usize;
  dv: usize;

  /** Per head: a packed state (state.ts), [rows, columns] forward and the gradient of the same backward. */
  state: usize;
  /** Per head: a packed state [columns, rows], backward only (causal: in the pass over queries). */
  transposed: usize;
  /** Per head [rows]: sum phi(k); backward, in the pass over keys, the sum of e phi(q), see backward.ts. */
  z: usize;
  /**
   * Causal: [rows], sums of phi(k) since the block began. Otherwise, backward, per head: the sum of e phi(q), see
   * backward.ts.
   */
  zLocal: usize;
  /** A packed state of sums since the block began, for long sequences (core_long.ts); else 0. */
  stateLocal: usize;

  /** [block, heads, rows]: phi(q) and phi(k). */
  queries: usize;
  keys: usize;
  /** [block, heads, columns]: v, or the gradient of the numerator; [block, heads]: that of the denominator. */
  values: usize;
  dDenominator: usize;
  /** A row of max(rows, columns) zeros, and eight rows for anything. */
  zeros: usize;
  spare: usize;
  /** 16 bytes for each of max(rows, columns): see pairs.ts. */
  pairs: usize;
  /** Causal backward: 16 bytes for each of `rows`, see core_both_sides.ts. */
  partial: usize;
  /** Two times 64 rows of max(rows, columns), see products.ts. */
  gathered: usize;
  /** Two numbers that outputs are multiplied by, 1 unless a pass writes them, and three products: see core.ts. */
  coefficients: usize;
  /** Constants of feature_maps.ts. */
  table: usize;
}

/** Row i of the spare ones. */
@inline
export function spareRow(a: Args, i: i32): usize {
  return a.spare + <usize>(max(a.rows, a.columns) * i) * 4;
}
