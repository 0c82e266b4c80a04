/**
 * The cases that every backend must pass: what linearAttention is given, never how it is tested. No test framework and
 * no Node here, so that a page can run the same list.
 */
import type {NaiveAttrs} from '../../src/linear_attention/naive';
import type {Dims} from '../../src/linear_attention/spec';
import {POINTWISE_MAPS} from '../../src/pointwise';
import {random, seedOfName} from '../../src/random';

/** Values in the layouts of src/linear_attention/spec.ts; mask, s and z are absent where undefined. */
export interface CaseValues {
  q: Float32Array;
  k: Float32Array;
  v: Float32Array;
  mask?: Float32Array;
  s?: Float32Array;
  z?: Float32Array;
  /** Gradients that arrive at output, s and z. */
  dOutput: Float32Array;
  dS: Float32Array;
  dZ: Float32Array;
}

export interface ConformanceCase {
  /** Reads as a sentence. */
  id: string;
  dims: Dims;
  attrs: NaiveAttrs;
  values(): CaseValues;
  /** How q, k and v come about: as they are, cut out of larger tensors, or transposed from another layout. */
  inputsAre?: 'slices' | 'transposes';
  /**
   * dq is 0 in theory but for eps at queries that see one key, or all keys along one feature: what comes out there is
   * the rounding of terms that cancel, and the case allows that much (rounding.ts).
   */
  dqCancels: boolean;
  /** Reference values to use instead of the oracle's, by name (output, s, z, dq, ...), at golden tolerances. */
  expected?: {[name: string]: ArrayLike<number>};
}

type MaskKind = 'end' | 'start' | 'interior' | 'one row all';

export interface CaseOptions extends Partial<Dims>, Partial<NaiveAttrs> {
  N?: number;
  mask?: MaskKind;
  /** What q, k and v hold where the mask is 0. */
  underMask?: number;
  state?: boolean;
  /** Default: from the case's name. */
  seed?: number;
  inputsAre?: 'slices' | 'transposes';
  /** See ConformanceCase; set where it has a reason of the case's own. */
  dqCancels?: boolean;
  /** Standard deviation of q and k, and what is added to them. */
  spread?: number;
  shift?: number;
}

/** Chunk and block lengths of the kernels: lengths around them and their multiples are where edges lie. */
const CHUNKS = [16, 32, 48, 64];

/** A case from what differs from the usual: causal, normalised, elu, B 1, H 2, N 11, r 4, d 5. */
export function makeCase(id: string, options: CaseOptions = {}): ConformanceCase {
  const {N = 11, B = 1, H = 2, r = 4, d = 5, causal = true, mask, underMask, state = false} = options;
  const {spread = 1, shift = 0, inputsAre} = options;
  const dims: Dims = {B, H, Nq: options.Nq ?? N, Nk: options.Nk ?? N, r, d};
  const attrs: NaiveAttrs = {
    causal,
    featureMap: options.featureMap ?? 'elu',
    normalize: options.normalize ?? true,
    eps: options.eps ?? 1e-6,
    scale: options.scale ?? 1,
    dataFormat: options.dataFormat ?? 'BHND',
  };
  // Of the name, so that a new case leaves the numbers of the others as they are.
  const seed = options.seed ?? seedOfName(id);
  return {
    id,
    dims,
    attrs,
    inputsAre,
    dqCancels: options.dqCancels ?? (attrs.normalize && !state && (r === 1 || dims.Nk === 1)),
    values: () => {
      const generator = random(seed);
      const normal = (n: number, deviation = 1, mean = 0) =>
        Float32Array.from({length: n}, () => {
          // The sum of six uniform numbers is close enough to normal here.
          let sum = -3;
          for (let i = 0; i < 6; i++) {
            sum += generator.uniform();
          }
          return mean + sum * Math.SQRT2 * deviation;
        });
      const {Nq, Nk} = dims;
      const values: CaseValues = {
        q: normal(B * H * Nq * r, spread, shift),
        k: normal(B * H * Nk * r, spread, shift),
        v: normal(B * H * Nk * d),
        dOutput: normal(B * H * Nq * d),
        dS: normal(B * H * r * d),
        dZ: normal(B * H * r),
      };
      if (mask !== undefined) {
        values.mask = maskOf(mask, B, Nk);
      }
      if (state) {
        values.s = normal(B * H * r * d);
        // z sums features, which are positive for most maps.
        values.z = normal(B * H * r).map((x) => Math.abs(x) + 0.5);
      }
      if (underMask !== undefined) {
        poison(values, dims, attrs, underMask);
      }
      return values;
    },
  };
}

function maskOf(kind: MaskKind, B: number, N: number): Float32Array {
  return Float32Array.from({length: B * N}, (_, i) => {
    const [b, n] = [Math.floor(i / N), i % N];
    switch (kind) {
      case 'end':
        return n < N - 2 - b ? 1 : 0;
      case 'start':
        return n >= 2 + b ? 1 : 0;
      case 'interior':
        return (n + b) % 3 === 1 ? 0 : 1;
      case 'one row all':
        return b === 0 ? 0 : 1;
    }
  });
}

/** Writes `bad` into k and v wherever the mask is 0. */
function poison(values: CaseValues, {B, H, Nk, r, d}: Dims, attrs: NaiveAttrs, bad: number): void {
  for (let b = 0; b < B; b++) {
    for (let h = 0; h < H; h++) {
      for (let n = 0; n < Nk; n++) {
        if (values.mask?.[b * Nk + n] === 0) {
          const row = attrs.dataFormat === 'BHND' ? (b * H + h) * Nk + n : (b * Nk + n) * H + h;
          values.k.fill(bad, row * r, (row + 1) * r);
          values.v.fill(bad, row * d, (row + 1) * d);
        }
      }
    }
  }
}

const both = (f: (causal: boolean, name: string) => ConformanceCase[]): ConformanceCase[] => [
  ...f(true, 'causal'),
  ...f(false, 'non-causal'),
];

const LENGTHS = [...new Set([1, 2, 7, ...CHUNKS.flatMap((C) => [C - 1, C, C + 1, 2 * C + 3])])].sort(
  (a, b) => a - b,
);
const SIZES = [1, 3, 8, 20, 64];
const MASKS: MaskKind[] = ['end', 'start', 'interior', 'one row all'];

/** Every case, small ones first where it does not matter. */
export const CASES: ConformanceCase[] = [
  ...both((causal, name) => LENGTHS.map((N) => makeCase(`${name} attention over ${N} tokens`, {N, causal}))),
  ...both((causal, name) => [
    makeCase(`${name} attention over 1000 tokens`, {N: 1000, H: 1, causal}),
    makeCase(`${name} attention over no token returns an empty output and a zero state`, {N: 0, causal}),
    makeCase(`${name} attention over no token returns the initial state`, {N: 0, causal, state: true}),
    makeCase(`${name} attention of 3 batch rows and 4 heads`, {B: 3, H: 4, causal}),
  ]),
  ...SIZES.flatMap((r) =>
    SIZES.map((d) => makeCase(`causal attention with ${r} features and ${d} values`, {r, d, N: 9, H: 1})),
  ),
  ...SIZES.flatMap((r, i) => [SIZES[i], SIZES[(i + 2) % 5]].map((d) => [r, d] as const)).map(([r, d]) =>
    makeCase(`non-causal attention with ${r} features and ${d} values`, {r, d, N: 9, H: 1, causal: false}),
  ),
  // More than a GPU workgroup's memory holds.
  ...both((causal, name) => [
    makeCase(`${name} attention with 150 features and 3 values`, {r: 150, d: 3, N: 70, H: 1, causal}),
    makeCase(`${name} attention with 2 features and 150 values`, {r: 2, d: 150, N: 70, H: 1, causal}),
    makeCase(`${name} attention with 130 features and 128 values, mask and state`, {
      r: 130,
      d: 128,
      N: 40,
      causal,
      mask: 'interior',
      state: true,
    }),
  ]),
  ...[
    [3, 70],
    [70, 3],
    [1, 33],
    [33, 1],
    [0, 5],
    [5, 0],
  ].map(([Nq, Nk]) => makeCase(`${Nq} queries over ${Nk} keys`, {Nq, Nk, causal: false})),
  makeCase('5 queries over no key read the initial state', {Nq: 5, Nk: 0, causal: false, state: true}),
  ...both((causal, name) =>
    MASKS.flatMap((mask) => [
      makeCase(`${name} attention with a mask over the ${mask}`, {N: 37, B: 2, causal, mask}),
      makeCase(`unnormalised ${name} attention with a mask over the ${mask}`, {
        N: 19,
        B: 2,
        causal,
        mask,
        normalize: false,
        scale: 0.5,
      }),
    ]),
  ),
  ...both((causal, name) => [
    makeCase(`${name} attention with NaN under the mask`, {
      B: 2,
      causal,
      mask: 'interior',
      underMask: Number.NaN,
    }),
    makeCase(`${name} attention with 1e9 under the mask`, {B: 2, causal, mask: 'interior', underMask: 1e9}),
    makeCase(`${name} exp attention with 1e9 under the mask`, {
      causal,
      mask: 'end',
      underMask: 1e9,
      featureMap: 'exp',
      eps: 0,
    }),
    makeCase(`${name} attention from an initial state`, {N: 35, B: 2, causal, state: true}),
    makeCase(`${name} attention from an initial state with a mask`, {
      N: 35,
      B: 2,
      causal,
      state: true,
      mask: 'start',
    }),
    makeCase(`unnormalised ${name} attention from an initial state`, {
      N: 35,
      causal,
      state: true,
      normalize: false,
      scale: -0.25,
    }),
    makeCase(`${name} attention with a large eps`, {causal, eps: 0.5}),
    makeCase(`normalised ${name} attention ignores the scale`, {causal, scale: 7}),
    makeCase(`${name} attention of [B,N,H,.] inputs`, {N: 21, B: 2, H: 3, causal, dataFormat: 'BNHD'}),
    makeCase(`${name} attention of [B,N,H,.] inputs with mask and state`, {
      N: 21,
      B: 2,
      H: 3,
      causal,
      dataFormat: 'BNHD',
      mask: 'interior',
      state: true,
      underMask: Number.NaN,
    }),
    makeCase(`unnormalised ${name} attention of [B,N,H,.] inputs`, {
      N: 21,
      H: 3,
      causal,
      dataFormat: 'BNHD',
      normalize: false,
      scale: 3,
    }),
    makeCase(`${name} attention of slices`, {causal, inputsAre: 'slices'}),
    makeCase(`${name} attention of transposes`, {causal, inputsAre: 'transposes'}),
    makeCase(`${name} attention of slices of [B,N,H,.]`, {causal, dataFormat: 'BNHD', inputsAre: 'slices'}),
  ]),
  makeCase('12 queries over 40 keys in [B,N,H,.] with a mask', {
    Nq: 12,
    Nk: 40,
    B: 2,
    causal: false,
    dataFormat: 'BNHD',
    mask: 'end',
  }),
  ...both((causal, name) =>
    POINTWISE_MAPS.flatMap((featureMap) => [
      makeCase(`${name} attention with the ${featureMap} map`, {
        N: 34,
        causal,
        featureMap,
        // Identity features have any sign: away from 0 they keep the denominator away from it too.
        ...(featureMap === 'identity' ? {spread: 0.2, shift: 1} : {}),
      }),
      makeCase(`unnormalised ${name} attention with the ${featureMap} map, mask and state`, {
        N: 34,
        B: 2,
        causal,
        featureMap,
        normalize: false,
        mask: 'interior',
        state: true,
      }),
    ]),
  ),
  ...both((causal, name) => [
    makeCase(`${name} attention with most features 0`, {
      causal,
      featureMap: 'squaredRelu',
      shift: -1,
      dqCancels: true,
    }),
    makeCase(`${name} attention of queries and keys around 100`, {causal, spread: 5, shift: 100}),
    makeCase(`${name} attention of queries and keys around -20`, {causal, spread: 1, shift: -20, eps: 0}),
    makeCase(`${name} attention with denominators around 1e-8`, {
      causal,
      featureMap: 'relu',
      spread: 1e-5,
      shift: 3e-5,
      eps: 0,
    }),
    makeCase(`${name} attention with all features 0 gives 0`, {
      causal,
      featureMap: 'relu',
      spread: 0.1,
      shift: -5,
    }),
    makeCase(`${name} exp attention of large inputs`, {
      causal,
      featureMap: 'exp',
      spread: 3,
      shift: 12,
      eps: 0,
    }),
  ]),
];
