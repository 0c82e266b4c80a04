/**
 * Linear attention over Float32Arrays in plain JavaScript, forward and backward, for wherever there is nothing faster.
 * Memory is O(N (r + d)) for one head at a time plus one state; no tensor and no tfjs is involved.
 *
 * The normaliser is one more value column: V~ = [V, 1], S~ = [S, z], so numerator and denominator come out of the same
 * scan (scan.ts). With dN~ = [dY / (den + eps), -(dY.y) / (den + eps)] and G~ the final state's gradient:
 *
 *     N~ = f(Q, K, V~; S~)      dQ = f(dN~, V~, K; S~^T)      dV~ = f_rev(K, Q, dN~; G~)      dK = f_rev(V~, dN~, Q; G~^T)
 *
 * Every state is summed up from its own end, never run backwards by subtraction.
 */
import {chainRow, mapRow} from '../pointwise';
import {type Rows, Scan} from './scan';
import type {Dims, LinearAttentionAttrs} from './spec';

/** Row-major values in the layouts of spec.ts. mask, s and z are read only if attrs.hasMask, attrs.hasState. */
export interface PlainInputs {
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
  mask: Float32Array;
  s: Float32Array;
  z: Float32Array;
}

export interface PlainOutputs {
  output: Float32Array;
  s: Float32Array;
  z: Float32Array;
  /** [1] of 0 when not normalised. */
  inverse: Float32Array;
}

export interface PlainGradients {
  dq: Float32Array;
  dk: Float32Array;
  dv: Float32Array;
  /** [1] of 0 when there is no state; so is dz. */
  ds: Float32Array;
  dz: Float32Array;
}

/** Where one head's rows lie. */
interface Head {
  b: number;
  index: number;
  /** Row number of token n in a tensor of length N. */
  row(n: number, N: number): number;
}

function eachHead({B, H}: Dims, {dataFormat}: LinearAttentionAttrs, body: (head: Head) => void): void {
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      const row =
        dataFormat === 'BHND'
          ? (n: number, N: number) => (b * H + h) * N + n
          : (n: number, N: number) => (b * N + n) * H + h;
      body({b, index: b * H + h, row});
    }
  }
}

const makeRows = (rows: number, width: number): Rows => ({
  data: new Float32Array(rows * width),
  rows,
  width,
});

/** The operands of one head, filled again for each. */
interface Operands {
  Q: Rows;
  K: Rows;
  V: Rows;
  keeps: Uint8Array;
}

function makeOperands({Nq, Nk, r, d}: Dims): Operands {
  return {
    Q: makeRows(Nq, r),
    K: makeRows(Nk, r),
    V: makeRows(Nk, d + 1),
    keeps: new Uint8Array(Nk),
  };
}

/** Gathers a head's rows: phi(q); phi(k) and [v, 1], both selected to 0 where the mask is 0. */
function gather(x: PlainInputs, {Nq, Nk, r, d}: Dims, attrs: LinearAttentionAttrs, head: Head, to: Operands) {
  const {Q, K, V, keeps} = to;
  for (let n = 0; n < Nq; n++) {
    mapRow(attrs.featureMap, x.q, head.row(n, Nq) * r, Q.data, n * r, r);
  }
  for (let n = 0; n < Nk; n++) {
    keeps[n] = !attrs.hasMask || x.mask[head.b * Nk + n] !== 0 ? 1 : 0;
    if (keeps[n] === 0) {
      K.data.fill(0, n * r, (n + 1) * r);
      V.data.fill(0, n * (d + 1), (n + 1) * (d + 1));
      continue;
    }
    mapRow(attrs.featureMap, x.k, head.row(n, Nk) * r, K.data, n * r, r);
    const from = head.row(n, Nk) * d;
    for (let j = 0; j < d; j++) {
      V.data[n * (d + 1) + j] = x.v[from + j];
    }
    V.data[n * (d + 1) + d] = 1;
  }
}

/** [s, z] of one head as [r,d+1]; zeros when absent. */
function joinState(
  s: Float32Array,
  z: Float32Array,
  present: boolean,
  {r, d}: Dims,
  head: Head,
): Float64Array {
  const state = new Float64Array(r * (d + 1));
  for (let i = 0; present && i < r; i++) {
    for (let j = 0; j < d; j++) {
      state[i * (d + 1) + j] = s[(head.index * r + i) * d + j];
    }
    state[i * (d + 1) + d] = z[head.index * r + i];
  }
  return state;
}

function splitState(state: Float64Array, s: Float32Array, z: Float32Array, {r, d}: Dims, head: Head): void {
  for (let i = 0; i < r; i++) {
    for (let j = 0; j < d; j++) {
      s[(head.index * r + i) * d + j] = state[i * (d + 1) + j];
    }
    z[head.index * r + i] = state[i * (d + 1) + d];
  }
}

function transposed(x: Float64Array, rows: number, columns: number): Float64Array {
  const out = new Float64Array(x.length);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      out[j * rows + i] = x[i * columns + j];
    }
  }
  return out;
}

/** f or f_rev of scan.ts. `state` becomes the final one. */
function product(
  scan: Scan,
  causal: boolean,
  reverse: boolean,
  [a, b, c]: [Rows, Rows, Rows],
  state: Float64Array,
  out: Float32Array,
): void {
  if (causal) {
    scan.causal(a, b, c, out, state, reverse);
  } else {
    scan.update(b, c, state);
    scan.read(a, state, out, c.width);
  }
}

/** output, s, z and inverse of spec.ts. */
export function plainForward(x: PlainInputs, dims: Dims, attrs: LinearAttentionAttrs): PlainOutputs {
  const {B, H, Nq, Nk, r, d} = dims;
  const output = new Float32Array(B * H * Nq * d);
  const s = new Float32Array(B * H * r * d);
  const z = new Float32Array(B * H * r);
  const inverse = new Float32Array(attrs.normalize ? B * H * Nq : 1);
  const operands = makeOperands(dims);
  const N = new Float32Array(Nq * (d + 1));
  const scan = new Scan(Math.max(Nq, Nk), Math.max(r, d + 1));
  eachHead(dims, attrs, (head) => {
    const {Q, K, V} = operands;
    gather(x, dims, attrs, head, operands);
    const state = joinState(x.s, x.z, attrs.hasState, dims, head);
    product(scan, attrs.causal, false, [Q, K, V], state, N);
    splitState(state, s, z, dims, head);
    for (let n = 0; n < Nq; n++) {
      const row = head.row(n, Nq);
      const den = N[n * (d + 1) + d];
      const empty = attrs.normalize && den === 0;
      const factor = attrs.normalize ? 1 / (den + attrs.eps) : attrs.scale;
      for (let j = 0; j < d; j++) {
        output[row * d + j] = empty ? 0 : N[n * (d + 1) + j] * factor;
      }
      if (attrs.normalize) {
        inverse[row] = empty ? 0 : factor;
      }
    }
  });
  return {output, s, z, inverse};
}

/** Gradients from forward's inputs, output and inverse, and from what arrives at output, s and z. */
export function plainBackward(
  x: PlainInputs,
  saved: {output: Float32Array; inverse: Float32Array},
  cotangents: {dOutput: Float32Array; dS: Float32Array; dZ: Float32Array},
  dims: Dims,
  attrs: LinearAttentionAttrs,
): PlainGradients {
  const {B, H, Nq, Nk, r, d} = dims;
  const D = d + 1;
  const dq = new Float32Array(B * H * Nq * r);
  const dk = new Float32Array(B * H * Nk * r);
  const dv = new Float32Array(B * H * Nk * d);
  const ds = new Float32Array(attrs.hasState ? B * H * r * d : 1);
  const dz = new Float32Array(attrs.hasState ? B * H * r : 1);
  const operands = makeOperands(dims);
  const dN = makeRows(Nq, D);
  const dPhiQ = new Float32Array(Nq * r);
  const dPhiK = new Float32Array(Nk * r);
  const dV = new Float32Array(Nk * D);
  const scan = new Scan(Math.max(Nq, Nk), Math.max(r, D));
  eachHead(dims, attrs, (head) => {
    const {Q, K, V, keeps} = operands;
    gather(x, dims, attrs, head, operands);
    for (let n = 0; n < Nq; n++) {
      const row = head.row(n, Nq);
      const factor = attrs.normalize ? saved.inverse[row] : attrs.scale;
      let dDen = 0;
      for (let j = 0; j < d; j++) {
        const dNum = cotangents.dOutput[row * d + j] * factor;
        dN.data[n * D + j] = dNum;
        dDen -= dNum * saved.output[row * d + j];
      }
      dN.data[n * D + d] = attrs.normalize ? dDen : 0;
    }
    const state = transposed(joinState(x.s, x.z, attrs.hasState, dims, head), r, D);
    const G = joinState(cotangents.dS, cotangents.dZ, true, dims, head);
    const transposedG = transposed(G, r, D);
    product(scan, attrs.causal, false, [dN, V, K], state, dPhiQ);
    product(scan, attrs.causal, true, [K, Q, dN], G, dV);
    product(scan, attrs.causal, true, [V, dN, Q], transposedG, dPhiK);
    if (attrs.hasState) {
      splitState(G, ds, dz, dims, head);
    }
    for (let n = 0; n < Nq; n++) {
      chainRow(attrs.featureMap, x.q, head.row(n, Nq) * r, Q.data, dPhiQ, n * r, dq, r);
    }
    for (let n = 0; n < Nk; n++) {
      if (keeps[n] === 0) {
        continue;
      }
      const row = head.row(n, Nk);
      chainRow(attrs.featureMap, x.k, row * r, K.data, dPhiK, n * r, dk, r);
      dv.set(dV.subarray(n * D, n * D + d), row * d);
    }
  });
  return {dq, dk, dv, ds, dz};
}
