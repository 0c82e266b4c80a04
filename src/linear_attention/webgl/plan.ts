/**
 * How a call is laid out in textures.
 *
 * Legend: B batch, H heads, N length (Nq, Nk), r features, d values. R and D are r and d + 1 rounded up to even: value
 * column d of v is 1, so that column d of a state is z, and a row's product with it the denominator. L tokens form a
 * chunk. Two tokens, features or values make a pair, the side of a texel.
 */
import {isHalfFloat} from '../../tfjs';
import {fits, type Grid, gridOf} from '../../webgl/grid';
import type {HalfAttrs} from '../halves';
import type {Dims} from '../spec';

/** A sequence cut into chunks of L tokens. */
export interface Chunks {
  tokens: number;
  chunks: number;
  /** Chunks are summed by groups first where they are many; 0: they are not. */
  group: number;
  groups: number;
}

export interface Plan extends Dims {
  attrs: HalfAttrs;
  /** States hold means over the tokens before, not sums: half floats end at 65504. */
  means: boolean;
  /** Tokens that the initial state is the mean of: 0 where there is none, 1 where it is one of the caller's. */
  initialTokens: number;
  R: number;
  D: number;
  L: number;
  overQueries: Chunks;
  overKeys: Chunks;
  /** Pairs of tokens in a unit: half a chunk, or all there are. */
  height: number;
  /** phi(q), phi(k) and [v, 1] of a head, chunk by chunk. */
  rows: Grid;
  /** The gradient at [numerator, denominator] of the queries. */
  numerators: Grid;
  /** Products inside the chunks of queries, and a column more. */
  scores: Grid;
}

/** Up to so many chunks are summed in one pass. */
const ONE_PASS = 24;
const LONGEST_CHUNK = 1024;

const even = (n: number): number => n + (n % 2);

function chunksOf(tokens: number, L: number): Chunks {
  const chunks = Math.ceil(tokens / L);
  const group = chunks > ONE_PASS ? Math.ceil(Math.sqrt(chunks)) : 0;
  return {tokens, chunks, group, groups: group === 0 ? 0 : Math.ceil(chunks / group)};
}

/** One state for each of `count` places of every head. */
export const statesGrid = ({B, H, R, D}: Pick<Plan, 'B' | 'H' | 'R' | 'D'>, count: number): Grid =>
  gridOf(B * H * count, R / 2, D / 2);

function planFor(dims: Dims, attrs: HalfAttrs, L = dims.r <= 32 ? 32 : 64): Plan {
  const {B, H, Nq, Nk, r, d} = dims;
  const [R, D] = [even(r), even(d + 1)];
  const overQueries = chunksOf(Nq, L);
  const overKeys = chunksOf(Nk, L);
  const height = Math.min(L, even(Math.max(Nq, Nk))) / 2;
  const perHead = overQueries.chunks + 2 * overKeys.chunks;
  const queries = B * H * overQueries.chunks;
  return {
    ...dims,
    ...{attrs, means: isHalfFloat(), R, D, L, overQueries, overKeys, height},
    initialTokens: attrs.hasState ? (attrs.meanOf ?? 1) : 0,
    rows: gridOf(B * H * perHead, height, Math.max(R, D) / 2),
    numerators: gridOf(queries, height, D / 2),
    scores: gridOf(queries, height, (attrs.causal ? L / 2 : 0) + 1),
  };
}

/** States at the edges of all chunks. */
const statesOf = (plan: Plan): Grid =>
  statesGrid(plan, Math.max(plan.overQueries.chunks, plan.overKeys.chunks) + 1);

/** What a plan's largest textures hold, by name. Backward's are not larger. */
const texturesOf = (plan: Plan): {[name: string]: Grid} => ({
  'mapped queries, keys and values': plan.rows,
  'chunk states': statesOf(plan),
  scores: plan.scores,
});

/**
 * The plan of a call, or null where some texture would be too large. Chunks are made longer where the states of all of
 * them would not fit, as long as the scores, which then grow, do.
 */
export function planOf(dims: Dims, attrs: HalfAttrs): Plan | null {
  let plan = planFor(dims, attrs);
  while (!fits(statesOf(plan)) && plan.L < LONGEST_CHUNK) {
    const longer = planFor(dims, attrs, plan.L * 2);
    if (!fits(longer.scores)) {
      break;
    }
    plan = longer;
  }
  return Object.values(texturesOf(plan)).every(fits) ? plan : null;
}

/** Which texture would be too large even for one token of one head, and its sides in texels; null where none. */
export function hopeless(dims: Dims, attrs: HalfAttrs): {name: string; sides: string} | null {
  const plan = planFor({...dims, B: 1, H: 1, Nq: 1, Nk: 1}, attrs);
  for (const [name, grid] of Object.entries(texturesOf(plan))) {
    if (!fits(grid)) {
      return {name, sides: `${grid.perBand * grid.height} x ${grid.bands * grid.width}`};
    }
  }
  return null;
}
