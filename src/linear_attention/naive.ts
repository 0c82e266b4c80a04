/**
 * The oracle: linear attention as the definition says, all N^2 pairs, in double precision. Every kernel is tested
 * against it, and it against central differences. Slow on purpose; nothing but tests and checks should call it.
 *
 * With a_ts = phi(q_t).phi(k_s) over the keys that t may see, S0 and z0 the initial state:
 *
 *     num_t = sum_s a_ts v_s + phi(q_t)^T S0       S = S0 + sum_s phi(k_s) v_s^T
 *     den_t = sum_s a_ts + phi(q_t).z0             z = z0 + sum_s phi(k_s)
 *     y_t   = den_t == 0 ? 0 : num_t / (den_t + eps), or scale * num_t when not normalised
 *
 * Backward: dnum_t = dy_t / (den_t + eps), dden_t = -(dy_t.y_t) / (den_t + eps), da_ts = dnum_t.v_s + dden_t, and the
 * sums above read the other way. phi(k) and v are selected to 0 where the mask is 0.
 */
import {pointwiseDerivative, pointwiseScalar} from '../pointwise';
import type {Dims, LinearAttentionAttrs} from './spec';

type Numbers = ArrayLike<number>;

export type NaiveAttrs = Pick<
  LinearAttentionAttrs,
  'causal' | 'featureMap' | 'normalize' | 'eps' | 'scale' | 'dataFormat'
>;

/** Row-major values in the layouts of spec.ts; what is left out is absent. */
export interface NaiveInputs {
  q: Numbers;
  k: Numbers;
  v: Numbers;
  /** [B,Nk]; keeps where it is not 0. */
  mask?: Numbers;
  s?: Numbers;
  z?: Numbers;
}

export interface NaiveOutputs {
  output: Float64Array;
  s: Float64Array;
  z: Float64Array;
}

export interface NaiveGradients {
  dq: Float64Array;
  dk: Float64Array;
  dv: Float64Array;
  ds: Float64Array;
  dz: Float64Array;
}

/** Where the rows of one head lie in q, k, v and the output. */
interface Head {
  /** Index of the head among the B*H. */
  index: number;
  /** First element of row n of a tensor of length N and row width w. */
  row(n: number, N: number, w: number): number;
  keeps(n: number): boolean;
}

function* heads({mask}: NaiveInputs, {B, H, Nk}: Dims, attrs: NaiveAttrs): Generator<Head> {
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      yield {
        index: b * H + h,
        row: (n, N, w) => (attrs.dataFormat === 'BHND' ? (b * H + h) * N + n : (b * N + n) * H + h) * w,
        keeps: (n) => mask === undefined || mask[b * Nk + n] !== 0,
      };
    }
  }
}

/** One head: mapped rows, masked values, initial state, numerators, denominators and outputs. */
function attend(x: NaiveInputs, {Nq, Nk, r, d}: Dims, attrs: NaiveAttrs, head: Head) {
  const phi = (data: Numbers, start: number) =>
    Float64Array.from({length: r}, (_, i) => pointwiseScalar(attrs.featureMap, data[start + i]));
  const Q = Array.from({length: Nq}, (_, t) => phi(x.q, head.row(t, Nq, r)));
  const K = Array.from({length: Nk}, (_, s) =>
    head.keeps(s) ? phi(x.k, head.row(s, Nk, r)) : new Float64Array(r),
  );
  const V = Array.from({length: Nk}, (_, s) =>
    Float64Array.from({length: d}, (_, j) => (head.keeps(s) ? x.v[head.row(s, Nk, d) + j] : 0)),
  );
  const s0 = (i: number, j: number) => (x.s === undefined ? 0 : x.s[(head.index * r + i) * d + j]);
  const z0 = (i: number) => (x.z === undefined ? 0 : x.z[head.index * r + i]);
  const seen = (t: number) => (attrs.causal ? t + 1 : Nk);

  const Y: Float64Array[] = [];
  const inverse: number[] = [];
  for (let t = 0; t < Nq; t++) {
    const num = new Float64Array(d);
    let den = 0;
    for (let i = 0; i < r; i++) {
      den += Q[t][i] * z0(i);
      for (let j = 0; j < d; j++) {
        num[j] += Q[t][i] * s0(i, j);
      }
    }
    for (let s = 0; s < seen(t); s++) {
      const a = dot(Q[t], K[s]);
      den += a;
      for (let j = 0; j < d; j++) {
        num[j] += a * V[s][j];
      }
    }
    inverse.push(attrs.normalize ? (den === 0 ? 0 : 1 / (den + attrs.eps)) : attrs.scale);
    Y.push(num.map((n) => (attrs.normalize && den === 0 ? 0 : n * inverse[t])));
  }
  return {Q, K, V, s0, z0, seen, Y, inverse};
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    sum += a[i] * b[i];
  }
  return sum;
}

/** Output (q's layout), s [B,H,r,d] and z [B,H,r]. */
export function naiveForward(x: NaiveInputs, dims: Dims, attrs: NaiveAttrs): NaiveOutputs {
  const {B, H, Nq, Nk, r, d} = dims;
  const output = new Float64Array(B * H * Nq * d);
  const s = new Float64Array(B * H * r * d);
  const z = new Float64Array(B * H * r);
  for (const head of heads(x, dims, attrs)) {
    const {K, V, s0, z0, Y} = attend(x, dims, attrs, head);
    for (let t = 0; t < Nq; t++) {
      output.set(Y[t], head.row(t, Nq, d));
    }
    for (let i = 0; i < r; i++) {
      z[head.index * r + i] = z0(i);
      for (let n = 0; n < Nk; n++) {
        z[head.index * r + i] += K[n][i];
      }
      for (let j = 0; j < d; j++) {
        let sum = s0(i, j);
        for (let n = 0; n < Nk; n++) {
          sum += K[n][i] * V[n][j];
        }
        s[(head.index * r + i) * d + j] = sum;
      }
    }
  }
  return {output, s, z};
}

/** Gradients of sum(output * dOutput) + sum(s * dS) + sum(z * dZ). */
export function naiveBackward(
  x: NaiveInputs,
  dims: Dims,
  attrs: NaiveAttrs,
  cotangents: {dOutput: Numbers; dS?: Numbers; dZ?: Numbers},
): NaiveGradients {
  const {B, H, Nq, Nk, r, d} = dims;
  const {dOutput, dS, dZ} = cotangents;
  const dq = new Float64Array(B * H * Nq * r);
  const dk = new Float64Array(B * H * Nk * r);
  const dv = new Float64Array(B * H * Nk * d);
  const ds = Float64Array.from({length: B * H * r * d}, (_, i) => dS?.[i] ?? 0);
  const dz = Float64Array.from({length: B * H * r}, (_, i) => dZ?.[i] ?? 0);
  for (const head of heads(x, dims, attrs)) {
    const {Q, K, V, s0, z0, seen, Y, inverse} = attend(x, dims, attrs, head);
    const dPhiQ = Q.map(() => new Float64Array(r));
    // The final state's gradient reaches every key.
    const dPhiK = K.map((_, n) =>
      Float64Array.from({length: r}, (_, i) => {
        const rowOfS = Float64Array.from({length: d}, (_, j) => dS?.[(head.index * r + i) * d + j] ?? 0);
        return dot(rowOfS, V[n]) + (dZ?.[head.index * r + i] ?? 0);
      }),
    );
    const dV = V.map((_, n) =>
      Float64Array.from({length: d}, (_, j) => {
        const columnOfS = Float64Array.from({length: r}, (_, i) => dS?.[(head.index * r + i) * d + j] ?? 0);
        return dot(columnOfS, K[n]);
      }),
    );
    for (let t = 0; t < Nq; t++) {
      const dY = Float64Array.from({length: d}, (_, j) => dOutput[head.row(t, Nq, d) + j]);
      const dNum = dY.map((g) => g * inverse[t]);
      const dDen = attrs.normalize ? -dot(dY, Y[t]) * inverse[t] : 0;
      for (let i = 0; i < r; i++) {
        dPhiQ[t][i] += dDen * z0(i);
        dz[head.index * r + i] += dDen * Q[t][i];
        for (let j = 0; j < d; j++) {
          dPhiQ[t][i] += dNum[j] * s0(i, j);
          ds[(head.index * r + i) * d + j] += dNum[j] * Q[t][i];
        }
      }
      for (let s = 0; s < seen(t); s++) {
        const a = dot(Q[t], K[s]);
        const da = dot(dNum, V[s]) + dDen;
        for (let i = 0; i < r; i++) {
          dPhiQ[t][i] += da * K[s][i];
          dPhiK[s][i] += da * Q[t][i];
        }
        for (let j = 0; j < d; j++) {
          dV[s][j] += a * dNum[j];
        }
      }
    }
    const through = (data: Numbers, start: number, gradient: Float64Array) =>
      gradient.map((g, i) => g * pointwiseDerivative(attrs.featureMap, data[start + i]));
    for (let t = 0; t < Nq; t++) {
      dq.set(through(x.q, head.row(t, Nq, r), dPhiQ[t]), head.row(t, Nq, r));
    }
    for (let s = 0; s < Nk; s++) {
      if (head.keeps(s)) {
        dk.set(through(x.k, head.row(s, Nk, r), dPhiK[s]), head.row(s, Nk, r));
        dv.set(dV[s], head.row(s, Nk, d));
      }
    }
  }
  return {dq, dk, dv, ds, dz};
}
