/**
 * How a call is laid out in textures.
 *
 * Legend: B batch, H heads, N length (Nq, Nk), r features, d values. R and D are r and d + 1 rounded up to even: value
 * column d of v is 1, so that column d of a state is z, and a row's product with it the denominator. L tokens form a
 * chunk. Two tokens, features or values make a pair, the side of a texel.
 */
import * as tf from '@tensorflow/tfjs-core';
import {isHalfFloat} from '../../tfjs';
import {fits, type Grid, gridOf} from '../../webgl/grid';
import {type Dims, dimsOf, type LinearAttentionAttrs, type LinearAttentionInputs} from '../spec';

/** A sequence cut into chunks of L tokens. */
export interface Chunks {
  tokens: number;
  chunks: number;
  /** Chunks are summed by groups first where they are many; 0: they are not. */
  group: number;
  groups: number;
}

export interface Plan extends Dims {
  attrs: LinearAttentionAttrs;
  /** States hold means over the tokens before, not sums: half floats end at 65504. */
  means: boolean;
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

function planFor(dims: Dims, attrs: LinearAttentionAttrs, L: number): Plan {
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
    rows: gridOf(B * H * perHead, height, Math.max(R, D) / 2),
    numerators: gridOf(queries, height, D / 2),
    scores: gridOf(queries, height, (attrs.causal ? L / 2 : 0) + 1),
  };
}

/**
 * The plan of a call. Chunks are made longer where the states of all of them would not fit into a texture.
 *
 * @throws Error that names the texture where none fits.
 */
export function planOf(inputs: LinearAttentionInputs, attrs: LinearAttentionAttrs): Plan {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const states = (plan: Plan): Grid =>
    statesGrid(plan, Math.max(plan.overQueries.chunks, plan.overKeys.chunks) + 1);
  let plan = planFor(dims, attrs, dims.r <= 32 ? 32 : 64);
  while (!fits(states(plan)) && plan.L < LONGEST_CHUNK) {
    plan = planFor(dims, attrs, plan.L * 2);
  }
  const textures = {
    'mapped queries, keys and values': plan.rows,
    'chunk states': states(plan),
    scores: plan.scores,
  };
  for (const [name, {units, height, width, bands, perBand}] of Object.entries(textures)) {
    if (!fits({units, height, width, bands, perBand})) {
      const side = tf.env().getNumber('WEBGL_MAX_TEXTURE_SIZE');
      throw new Error(
        `linearAttention: the texture of ${name} needs ${units * height * width} texels, and this device's textures hold ${side} x ${side}; got q [${inputs.q.shape}], k [${inputs.k.shape}], v [${inputs.v.shape}]. Call it on parts of the batch, the heads or (with initialState) the sequence.`,
      );
    }
  }
  return plan;
}
