/**
 * Linear attention in stock tfjs ops, forward and backward: the kernel of every backend that has no better one, and
 * the differentiable form that gradients of gradients are made of. Only ops whose own gradients are right are used:
 * no cumsum, no einsum (both are wrong or missing in tfjs 4.22).
 *
 * Legend: B batch, H heads, N length, r features, d values, C chunk length, c chunks, D = d + 1 rounded up to even.
 * V~ = [V, 1] carries the normaliser as one more value column, so that S~ = [S, z] (Katharopoulos et al. 2020,
 * https://arxiv.org/abs/2006.16236, equations 9-12; chunk form: attention within a chunk plus the state before it).
 *
 *     A   = bcir,bcjr->bcij masked to j <= i        scores inside a chunk
 *     H   = exclusive prefix over c of bcjr,bcjD->bcrD, from the initial state
 *     N~  = bcir,bcrD->bciD + bcij,bcjD->bciD       numerator and denominator
 *
 * Backward, with dN~ = [dY / den, -(dY.y) / den] and G the gradient of the state at the chunk's end:
 *
 *     Bm  = bciD,bcjD->bcij masked to j <= i
 *     dQ  = bciD,bcrD->bcir (H) + bcij,bcjr->bcir (Bm, K)
 *     dK  = bcjD,bcrD->bcjr (G) + bcij,bcir->bcjr (Bm, Q)
 *     dV~ = bcjr,bcrD->bcjD (G) + bcij,bciD->bcjD (A, dN~)
 *     G   = exclusive suffix over c of bcir,bciD->bcrD, from the final state's gradient
 *
 * States are recomputed from the start, never run backwards by subtraction, which loses digits. Contracted axes are
 * always even: tfjs's packed webgl matMul reads undefined padding where an inner dimension is odd.
 */
import * as tf from '@tensorflow/tfjs-core';
import {isNonZero} from '../conditions';
import {pointwise, pointwiseGradient} from '../pointwise';
import {CHUNK, exclusivePrefix, exclusiveSuffix, fromChunks, lowerTriangle, select, toChunks} from './chunks';
import {type DataFormat, type Dims, dimsOf, type LinearAttentionAttrs} from './spec';

export interface ComposedInputs {
  q: tf.Tensor;
  k: tf.Tensor;
  v: tf.Tensor;
  mask: tf.Tensor;
  s: tf.Tensor;
  z: tf.Tensor;
}

const even = (n: number): number => n + (n % 2);

/** Both layouts to [B,H,N,.] and back: the permutation is its own inverse. */
const swapFormat = (x: tf.Tensor, dataFormat: DataFormat): tf.Tensor =>
  dataFormat === 'BHND' ? x : tf.transpose(x, [0, 2, 1, 3]);

/** Sizes of the chunks: one even chunk over everything when not causal. */
interface Plan extends Dims {
  queryChunk: number;
  keyChunk: number;
  chunks: number;
  /** r rounded up to even. */
  R: number;
  /** d + 1 rounded up to even. */
  D: number;
}

function planOf(inputs: ComposedInputs, attrs: LinearAttentionAttrs): Plan {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const longest = attrs.causal ? CHUNK : Number.POSITIVE_INFINITY;
  const length = (n: number) => Math.max(2, Math.min(longest, even(n)));
  const chunks = attrs.causal ? Math.max(1, Math.ceil(dims.Nq / length(dims.Nq))) : 1;
  return {
    ...dims,
    queryChunk: length(dims.Nq),
    keyChunk: length(dims.Nk),
    chunks,
    R: even(dims.r),
    D: even(dims.d + 1),
  };
}

/** What forward and backward share: mapped and masked rows in chunks, and the state before each chunk. */
interface Prepared {
  q: tf.Tensor;
  k: tf.Tensor;
  phiQ: tf.Tensor;
  phiK: tf.Tensor;
  /** [B,1,N,1] bool, or null. */
  keep: tf.Tensor | null;
  Q: tf.Tensor;
  K: tf.Tensor;
  V: tf.Tensor;
  /** State that each chunk's queries see from outside the chunk: [BHc,R,D]. */
  H: tf.Tensor;
  /** [BH,1,R,D] after the last token. */
  final: tf.Tensor;
}

/** [S, z, 0] as [BH,1,R,D]; zeros when there is no state. */
function packState(s: tf.Tensor, z: tf.Tensor, present: boolean, plan: Plan): tf.Tensor {
  const {B, H, r, d, R, D} = plan;
  if (!present) {
    return tf.zeros([B * H, 1, R, D]);
  }
  const both = tf.concat([tf.reshape(s, [B * H, 1, r, d]), tf.reshape(z, [B * H, 1, r, 1])], 3);
  return tf.pad(both, [
    [0, 0],
    [0, 0],
    [0, R - r],
    [0, D - d - 1],
  ]);
}

/** The two parts of a packed state, as [B,H,r,d] and [B,H,r]. */
function unpackState(state: tf.Tensor, plan: Plan): [tf.Tensor, tf.Tensor] {
  const {B, H, r, d} = plan;
  return [
    tf.reshape(tf.slice(state, [0, 0, 0, 0], [-1, -1, r, d]), [B, H, r, d]),
    tf.reshape(tf.slice(state, [0, 0, 0, d], [-1, -1, r, 1]), [B, H, r]),
  ];
}

function prepare(inputs: ComposedInputs, attrs: LinearAttentionAttrs, plan: Plan): Prepared {
  const {B, H, Nk, R, D, chunks, queryChunk, keyChunk} = plan;
  const keep = attrs.hasMask && Nk > 0 ? isNonZero(tf.reshape(inputs.mask, [B, 1, Nk, 1])) : null;
  const q = swapFormat(inputs.q, attrs.dataFormat);
  const k = select(keep, swapFormat(inputs.k, attrs.dataFormat));
  const v = select(keep, swapFormat(inputs.v, attrs.dataFormat));
  const phiQ = pointwise(attrs.featureMap, q);
  const phiK = select(keep, pointwise(attrs.featureMap, k));
  const Q = toChunks(phiQ, chunks, queryChunk, R); // [BHc,C,R]
  const K = toChunks(phiK, chunks, keyChunk, R); // [BHc,C,R]
  const ones = tf.ones([B, H, Nk, 1]);
  const V = toChunks(Nk > 0 ? tf.concat([v, ones], 3) : v, chunks, keyChunk, D); // [BHc,C,D]
  const local = tf.reshape(tf.matMul(K, V, true), [B * H, chunks, R, D]);
  const [before, final] = exclusivePrefix(packState(inputs.s, inputs.z, attrs.hasState, plan), local);
  // Not causal: every query sees the state after all keys.
  const seen = attrs.causal ? before : final;
  return {q, k, phiQ, phiK, keep, Q, K, V, H: tf.reshape(seen, [B * H * chunks, R, D]), final};
}

/** Scores inside a chunk, [BHc,C,C], selected (not multiplied) to 0 above the diagonal. */
const scores = (a: tf.Tensor, b: tf.Tensor): tf.Tensor =>
  tf.tidy(() => select(lowerTriangle(a.shape[1] as number), tf.matMul(a, b, false, true)));

/** Output [B,H,Nq,d] and inverse denominator [B,H,Nq,1] (null when not normalised). */
function read(p: Prepared, attrs: LinearAttentionAttrs, plan: Plan): [tf.Tensor, tf.Tensor | null] {
  const {B, H, Nq, d} = plan;
  const outer = tf.matMul(p.Q, p.H);
  const both = attrs.causal ? tf.add(outer, tf.matMul(scores(p.Q, p.K), p.V)) : outer; // [BHc,C,D]
  const num = fromChunks(both, B, H, Nq, [0, d]);
  if (!attrs.normalize) {
    return [tf.mul(num, attrs.scale), null];
  }
  const den = fromChunks(both, B, H, Nq, [d, 1]);
  // The divisor is selected before dividing: a select around 1 / 0 alone would give a NaN gradient.
  const some = isNonZero(den);
  const divisor = tf.where(some, tf.add(den, attrs.eps), tf.onesLike(den));
  const inverse = select(some, tf.div(1, divisor));
  return [select(some, tf.mul(num, inverse)), inverse];
}

/** Forward: output, s, z, inverse (see spec.ts). */
export function composedForward(inputs: ComposedInputs, attrs: LinearAttentionAttrs): tf.Tensor[] {
  return tf.tidy(() => {
    const plan = planOf(inputs, attrs);
    const prepared = prepare(inputs, attrs, plan);
    const [output, inverse] = read(prepared, attrs, plan);
    const [s, z] = unpackState(prepared.final, plan);
    return [
      swapFormat(output, attrs.dataFormat),
      s,
      z,
      inverse === null ? tf.zeros([1]) : tf.squeeze(swapFormat(inverse, attrs.dataFormat), [3]),
    ];
  });
}

/**
 * Backward: dq, dk, dv, ds, dz. `saved` are forward's output and inverse; without them they are computed again from
 * the inputs, which is what makes the result differentiable.
 */
export function composedBackward(
  inputs: ComposedInputs,
  gradients: {dOutput: tf.Tensor; dS: tf.Tensor; dZ: tf.Tensor},
  attrs: LinearAttentionAttrs,
  saved?: {output: tf.Tensor; inverse: tf.Tensor},
): tf.Tensor[] {
  return tf.tidy(() => {
    const plan = planOf(inputs, attrs);
    const {B, H, Nq, Nk, r, d, R, D, chunks, queryChunk} = plan;
    const p = prepare(inputs, attrs, plan);

    const dY = swapFormat(gradients.dOutput, attrs.dataFormat);
    let dN: tf.Tensor; // [B,H,Nq,d] or [B,H,Nq,d+1]
    if (attrs.normalize) {
      const [output, inverse] =
        saved === undefined
          ? (read(p, attrs, plan) as [tf.Tensor, tf.Tensor])
          : [
              swapFormat(saved.output, attrs.dataFormat),
              swapFormat(tf.expandDims(saved.inverse, 3), attrs.dataFormat),
            ];
      const dNum = tf.mul(dY, inverse);
      dN = Nq > 0 ? tf.concat([dNum, tf.neg(tf.sum(tf.mul(dNum, output), 3, true))], 3) : dNum;
    } else {
      dN = tf.mul(dY, attrs.scale);
    }
    const dNc = toChunks(dN, chunks, queryChunk, D); // [BHc,C,D]

    const local = tf.reshape(tf.matMul(p.Q, dNc, true), [B * H, chunks, R, D]);
    const [after, first] = exclusiveSuffix(
      local,
      packState(gradients.dS, gradients.dZ, attrs.returnState !== false, plan),
    );
    const G = tf.reshape(attrs.causal ? after : first, [B * H * chunks, R, D]);

    let dQ = tf.matMul(dNc, p.H, false, true); // [BHc,C,R]
    let dK = tf.matMul(p.V, G, false, true); // [BHc,C,R]
    let dV = tf.matMul(p.K, G); // [BHc,C,D]
    if (attrs.causal) {
      const A = scores(p.Q, p.K);
      const Bm = scores(dNc, p.V);
      dQ = tf.add(dQ, tf.matMul(Bm, p.K));
      dK = tf.add(dK, tf.matMul(Bm, p.Q, true));
      dV = tf.add(dV, tf.matMul(A, dNc, true));
    }
    const dPhiQ = fromChunks(dQ, B, H, Nq, [0, r]);
    const dPhiK = fromChunks(dK, B, H, Nk, [0, r]);
    const dq = pointwiseGradient(attrs.featureMap, dPhiQ, p.q, p.phiQ);
    const dk = select(p.keep, pointwiseGradient(attrs.featureMap, dPhiK, p.k, p.phiK));
    const dv = select(p.keep, fromChunks(dV, B, H, Nk, [0, d]));
    const state = attrs.hasState ? unpackState(first, plan) : [tf.zeros([1]), tf.zeros([1])];
    return [...[dq, dk, dv].map((x) => swapFormat(x, attrs.dataFormat)), ...state];
  });
}
