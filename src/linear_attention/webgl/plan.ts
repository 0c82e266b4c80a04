/**
 * How a call is laid out in textures.
 *
 * Legend: B batch, H heads, N length (Nq, Nk), r features, d values. R and D are r and d + 1 rounded up to even: value
 * column d of v is 1, so that column d of a state is z, and a row's product with it the denominator. L tokens form a
 * chunk. Two tokens, features or values make a pair, the side of a texel.
 */
import * as tf from '@tensorflow/tfjs-core';
import {isHalfFloat, maxPackedTexels} from '../../tfjs';
import {type Dims, dimsOf, type LinearAttentionAttrs, type LinearAttentionInputs} from '../spec';

export interface Plan extends Dims {
  attrs: LinearAttentionAttrs;
  /** States hold means over the tokens before, not sums: half floats end at 65504. */
  means: boolean;
  R: number;
  D: number;
  /** Width of the rows texture: phi(q), phi(k) and v one below the other. */
  W: number;
  /** Pairs of queries, of keys, and of all rows of a head; some may lie beyond the last token. */
  queries: number;
  keys: number;
  rows: number;
  L: number;
  overQueries: Chunks;
  overKeys: Chunks;
}

/** A sequence cut into chunks of L. */
export interface Chunks {
  tokens: number;
  chunks: number;
  /** Chunks are summed by groups first where they are many; 0: they are not. */
  group: number;
  groups: number;
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

function planFor(dims: Dims, attrs: LinearAttentionAttrs, L: number): Plan {
  const {Nq, Nk, r, d} = dims;
  // No texture has a single pair of rows: see src/webgl/draw.ts.
  const least = dims.B * dims.H === 1 ? 2 : 1;
  const queries = Math.max(least, Math.ceil(Nq / 2));
  const keys = Math.max(least, Math.ceil(Nk / 2));
  const [R, D] = [Math.max(2 * least, even(r)), even(d + 1)];
  return {
    ...dims,
    attrs,
    means: isHalfFloat(),
    R,
    D,
    W: Math.max(R, D),
    queries,
    keys,
    rows: queries + 2 * keys,
    L,
    overQueries: chunksOf(Nq, L),
    overKeys: chunksOf(Nk, L),
  };
}

/** The largest textures of a plan, in texels. */
function textures(plan: Plan): {[name: string]: number} {
  const {B, H, R, D, W, rows, queries, L, overQueries, overKeys, attrs} = plan;
  const chunks = Math.max(overQueries.chunks, overKeys.chunks);
  return {
    'mapped queries, keys and values': (B * H * rows * W) / 2,
    'chunk states': (B * H * (chunks + 1) * R * D) / 4,
    ...(attrs.causal ? {scores: (B * H * queries * (L + 2)) / 2} : {}),
  };
}

/**
 * The plan of a call. Chunks are made longer where the states of all of them would not fit into a texture.
 *
 * @throws Error that names the texture where none fits.
 */
export function planOf(inputs: LinearAttentionInputs, attrs: LinearAttentionAttrs): Plan {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const most = maxPackedTexels();
  let plan = planFor(dims, attrs, dims.r <= 32 ? 32 : 64);
  while (textures(plan)['chunk states'] > most && plan.L < LONGEST_CHUNK) {
    plan = planFor(dims, attrs, plan.L * 2);
  }
  for (const [name, texels] of Object.entries(textures(plan))) {
    if (texels > most) {
      const side = tf.env().getNumber('WEBGL_MAX_TEXTURE_SIZE');
      throw new Error(
        `linearAttention: the texture of ${name} needs ${texels} texels, and this device's textures hold ${side} x ${side}; got q [${inputs.q.shape}], k [${inputs.k.shape}], v [${inputs.v.shape}]. Call it on parts of the batch, the heads or (with initialState) the sequence.`,
      );
    }
  }
  return plan;
}
