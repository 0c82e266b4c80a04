/**
 * Linear attention in TensorFlow's operations, for tfjs-node where the native operations are not there: the algorithm of
 * composed.ts (its legend and equations hold here), written for a backend where a pass over memory costs as much as a
 * product. What differs:
 *
 * - The normaliser is no further column of the values: z is a sum of K's rows, the denominator z.q plus the row sums of
 *   the scores. All products stay [64,64] by [64,64], and nothing is joined or cut.
 * - A tensor is freed as soon as it was used, so that the next result lies in memory that is still in the cache.
 * - Selecting by a 0/1 tensor is one operation (MulNoNan).
 */
import * as tf from '@tensorflow/tfjs-core';
import {freeing, Operations, triangle} from '../node/operations';
import type {NodeBackend} from '../tfjs_node';
import {type ComposedInputs, composedBackward, composedForward} from './composed';
import {fromChunks, type Plan, perChunk, type Scanned, scan, scanRows, toChunks} from './node_scan';
import {dimsOf, type LinearAttentionAttrs} from './spec';

type Maybe = tf.Tensor | undefined;

/** What a call is given, sequences as [B,H,N,w]. */
interface Heads {
  q: tf.Tensor;
  k: tf.Tensor;
  v: tf.Tensor;
  /** [B,H,Nk,1], 1 or 0. */
  keep: Maybe;
  /** The state before the first token, [h,r,d] and [h,1,r], h = B H. */
  s: Maybe;
  z: Maybe;
}

interface GradHeads extends Heads {
  dY: tf.Tensor;
  output: Maybe;
  /** [B,H,Nq,1]. */
  inverse: Maybe;
  dS: Maybe;
  dZ: Maybe;
}

interface Prepared extends Plan {
  Q: tf.Tensor;
  K: tf.Tensor;
  V: tf.Tensor;
  S: Scanned;
  /** As [hc,1,r] and [h,1,r]. */
  z: Scanned;
}

/** @param total Whether the state after the last token is asked for. */
function prepare(t: Operations, heads: Heads, attrs: LinearAttentionAttrs, total: boolean): Prepared {
  const {q, k, v, keep, s, z} = heads;
  const h = tf.util.sizeFromShape(q.shape.slice(0, -2));
  const plan = {h, causal: attrs.causal};
  const chunked = (x: tf.Tensor) => freeing(toChunks(t, x, plan), x);
  const mapped = t.map(attrs.featureMap, k);
  const K = chunked(keep === undefined ? mapped : freeing(t.select(mapped, keep), mapped));
  const V = keep === undefined ? toChunks(t, v, plan) : chunked(t.select(v, keep));
  const order = {...plan, reverse: false, total};
  const S = scan(t, t.matMul(K, V, true), {...order, initial: s});
  const zs = scanRows(t, t.sum(K, 1), {...order, initial: z});
  return {...plan, Q: chunked(t.map(attrs.featureMap, q)), K, V, S, z: zs};
}

/** Scores inside a chunk, from [hc,C,C] products, which are freed. */
function causalScores(t: Operations, products: tf.Tensor): tf.Tensor {
  const lower = triangle(products.shape[1] as number, 'upTo');
  return freeing(t.select(products, lower), products, lower);
}

/** Frees what the chunks saw, once it was used. */
const done = ({seen, total}: Scanned): unknown => seen === total || freeing(undefined, seen);

const outputShape = ({q, v}: Heads): number[] => [...q.shape.slice(0, -1), v.shape[v.rank - 1]];

/** output, s, z, inverse. */
function forwardHeads(t: Operations, heads: Heads, attrs: LinearAttentionAttrs): Maybe[] {
  const p = prepare(t, heads, attrs, attrs.returnState !== false);
  const {Q, K, V, S, z} = p;
  const [rows, C] = Q.shape;
  let num = S.seen && t.matMul(Q, S.seen);
  done(S);
  // As rows, [hc,1,C]: a product with a column takes twice as long.
  let den = attrs.normalize && z.seen ? t.reshape(t.matMul(z.seen, Q, false, true), [rows, C, 1]) : undefined;
  if (attrs.causal) {
    const A = causalScores(t, freeing(t.matMul(Q, K, false, true), Q, K));
    den = attrs.normalize ? t.sumOf(den, t.sum(A, 2)) : undefined;
    num = t.sumOf(num, freeing(t.matMul(A, V), A, V));
  }
  const shape = outputShape(heads);
  const state = attrs.returnState === false ? [undefined, undefined] : [S.total, z.total];
  const numerator = fromChunks(t, num as tf.Tensor, p, shape);
  if (den === undefined) {
    const output = attrs.scale === 1 ? numerator : tf.mul(numerator, attrs.scale);
    return [output, ...state, undefined];
  }
  const denominator = fromChunks(t, den, p, [...shape.slice(0, -1), 1]);
  const some = tf.cast(tf.notEqual(denominator, 0), 'float32');
  const divisor = t.select(attrs.eps === 0 ? denominator : tf.add(denominator, attrs.eps), some);
  return [t.divideOrZero(numerator, divisor), ...state, t.inverseOrZero(divisor)];
}

/** dq, dk, dv, and ds, dz [h,1,r] where there is a state. */
function backwardHeads(t: Operations, heads: GradHeads, attrs: LinearAttentionAttrs): Maybe[] {
  const {q, k, keep, dY, output, inverse, dS, dZ} = heads;
  const p = prepare(t, heads, attrs, false);
  const {h, causal, Q, K, V, S, z} = p;

  let e: Maybe; // -(dY.y) / den, [hc,C,1]
  let dNum = dY;
  if (output !== undefined && inverse !== undefined) {
    dNum = t.mul(dY, inverse);
    const products = t.mul(dNum, output);
    e = toChunks(t, tf.neg(freeing(t.sum(products, products.rank - 1), products)), p);
  } else if (attrs.scale !== 1) {
    dNum = tf.mul(dY, attrs.scale);
  }
  const dN = toChunks(t, dNum, p); // [hc,C,d]
  freeing(dNum, dNum === dY ? undefined : dNum);

  const order = {h, causal, reverse: true, total: attrs.hasState};
  const G = scan(t, t.matMul(Q, dN, true), {...order, initial: dS});
  const g = e && scanRows(t, t.matMul(e, Q, true), {...order, initial: dZ});

  let dQ = t.sumOf(S.seen && t.matMul(dN, S.seen, false, true), e && z.seen && t.matMul(e, z.seen));
  done(S);
  let dV = G.seen && t.matMul(K, G.seen);
  let dK = G.seen && t.matMul(V, G.seen, false, true);
  done(G);
  if (causal) {
    const A = causalScores(t, t.matMul(Q, K, false, true));
    dV = t.sumOf(dV, freeing(t.matMul(A, dN, true), A));
    const products = t.matMul(dN, V, false, true);
    const Bm = causalScores(t, e === undefined ? products : freeing(t.add(products, e), products));
    dQ = t.sumOf(dQ, t.matMul(Bm, K));
    dK = t.sumOf(dK, freeing(t.matMul(Bm, Q, true), Bm));
  }
  // The gradient of z reaches each key alike.
  const dKey = g === undefined ? dZ && perChunk(t, dZ, K.shape[0] / h) : g.seen;
  if (dKey !== undefined) {
    dK = freeing(t.add(dK as tf.Tensor, dKey), dK);
  }
  tf.dispose([V, dN]);

  const gradient = (dPhi: Maybe, x: tf.Tensor, phi: tf.Tensor) =>
    t.mapGradient(
      attrs.featureMap,
      fromChunks(t, dPhi as tf.Tensor, p, x.shape),
      x,
      fromChunks(t, phi, p, x.shape),
    );
  const kept = (x: tf.Tensor) => (keep === undefined ? x : t.select(x, keep));
  return [
    gradient(dQ, q, Q),
    kept(gradient(dK, k, K)),
    kept(fromChunks(t, dV as tf.Tensor, p, heads.v.shape)),
    ...(attrs.hasState
      ? [G.total, g?.total ?? dZ ?? tf.zeros([h, 1, q.shape[q.rank - 1]])]
      : [undefined, undefined]),
  ];
}

/** What one call works with: how its tensors become heads, and heads its results. */
class Call {
  readonly t: Operations;
  private readonly B: number;
  private readonly H: number;

  constructor(
    backend: NodeBackend,
    private readonly inputs: ComposedInputs,
    readonly attrs: LinearAttentionAttrs,
  ) {
    this.t = new Operations(backend);
    const {B, H} = dimsOf(inputs, attrs.dataFormat);
    this.B = B;
    this.H = H;
  }

  /** Between both layouts and [B,H,N,w]: the permutation is its own inverse. */
  swap(x: tf.Tensor): tf.Tensor {
    return this.attrs.dataFormat === 'BHND' ? x : tf.transpose(x, [0, 2, 1, 3]);
  }

  heads(): Heads {
    const {B, H, attrs} = this;
    const {q, k, v, mask, s, z} = this.inputs;
    const key = this.swap(k);
    const kept = () =>
      tf.cast(tf.notEqual(tf.reshape(mask, [B, 1, key.shape[2] as number, 1]), 0), 'float32');
    return {
      q: this.swap(q),
      k: key,
      v: this.swap(v),
      keep: attrs.hasMask ? tf.tile(kept(), [1, H, 1, 1]) : undefined,
      ...(attrs.hasState ? this.state(s, z) : {s: undefined, z: undefined}),
    };
  }

  state(s: tf.Tensor, z: tf.Tensor): {s: tf.Tensor; z: tf.Tensor} {
    const [, , r, d] = s.shape as number[];
    const h = this.B * this.H;
    return {s: tf.reshape(s, [h, r, d]), z: tf.reshape(z, [h, 1, r])};
  }

  /** [B,H,r,d] and [B,H,r]; placeholders where there are none. */
  wholeState(s: Maybe, z: Maybe): [tf.Tensor, tf.Tensor] {
    if (s === undefined || z === undefined) {
      return [tf.zeros([1]), tf.zeros([1])];
    }
    const [, r, d] = s.shape as number[];
    return [tf.reshape(s, [this.B, this.H, r, d]), tf.reshape(z, [this.B, this.H, r])];
  }
}

/** Empty tensors have no chunks. */
const isEmpty = (inputs: ComposedInputs, attrs: LinearAttentionAttrs): boolean =>
  Object.values(dimsOf(inputs, attrs.dataFormat)).some((size) => size === 0);

/** Forward: output, s, z, inverse (see spec.ts). */
export function nodeForward(
  backend: NodeBackend,
  inputs: ComposedInputs,
  attrs: LinearAttentionAttrs,
): tf.Tensor[] {
  if (isEmpty(inputs, attrs)) {
    return composedForward(inputs, attrs);
  }
  return tf.tidy(() => {
    const call = new Call(backend, inputs, attrs);
    const [output, s, z, inverse] = forwardHeads(call.t, call.heads(), attrs);
    return [
      call.swap(output as tf.Tensor),
      ...call.wholeState(s, z),
      inverse === undefined ? tf.zeros([1]) : tf.squeeze(call.swap(inverse), [3]),
    ];
  });
}

/** Backward: dq, dk, dv, ds, dz. */
export function nodeBackward(
  backend: NodeBackend,
  inputs: ComposedInputs,
  saved: {output: tf.Tensor; inverse: tf.Tensor; dOutput: tf.Tensor; dS: tf.Tensor; dZ: tf.Tensor},
  attrs: LinearAttentionAttrs,
): tf.Tensor[] {
  if (isEmpty(inputs, attrs)) {
    return composedBackward(inputs, saved, attrs, saved);
  }
  return tf.tidy(() => {
    const call = new Call(backend, inputs, attrs);
    const {normalize, returnState} = attrs;
    const final = returnState === false ? {s: undefined, z: undefined} : call.state(saved.dS, saved.dZ);
    const heads: GradHeads = {
      ...call.heads(),
      dY: call.swap(saved.dOutput),
      output: normalize ? call.swap(saved.output) : undefined,
      inverse: normalize ? call.swap(tf.expandDims(saved.inverse, 3)) : undefined,
      dS: final.s,
      dZ: final.z,
    };
    const [dq, dk, dv, ds, dz] = backwardHeads(call.t, heads, attrs);
    return [...[dq, dk, dv].map((x) => call.swap(x as tf.Tensor)), ...call.wholeState(ds, dz)];
  });
}
