/** The numbers of the SIMD core: any sizes, long sequences, NaN and infinities, staging through its own memory. */
import fc from 'fast-check';
import {backwardOfArrays, forwardOfArrays} from '../src/linear_attention/arrays';
import {
  type PlainInputs,
  type PlainOutputs,
  plainBackward,
  plainForward,
} from '../src/linear_attention/plain';
import {stagedForward, stagingBytes} from '../src/linear_attention/simd_staged';
import type {DataFormat, Dims, LinearAttentionAttrs} from '../src/linear_attention/spec';
import {POINTWISE_MAPS, pointwiseScalar} from '../src/pointwise';
import {random} from '../src/random';
import {hasSimd} from '../src/wasm/instance';
import {difference, FLOAT32} from './helpers/compare';
import {randomNumbers} from './helpers/random_numbers';

const ATTRS: LinearAttentionAttrs = {
  updateRule: 'linear',
  causal: true,
  featureMap: 'elu',
  normalize: true,
  eps: 1e-6,
  scale: 1,
  dataFormat: 'BNHD',
  hasMask: false,
  hasState: false,
};

/** Inputs of a call and gradients that arrive at its results. */
function arraysFor({B, H, Nq, Nk, r, d}: Dims, seed: number) {
  let next = seed * 100;
  const make = (size: number) => randomNumbers(size, next++);
  return {
    q: make(B * H * Nq * r),
    k: make(B * H * Nk * r),
    v: make(B * H * Nk * d),
    mask: make(B * Nk).map((x) => (x > -0.5 ? 1 : 0)),
    s: make(B * H * r * d),
    z: make(B * H * r).map((x) => 20 + x),
    dOutput: make(B * H * Nq * d),
    dS: make(B * H * r * d),
    dZ: make(B * H * r),
  };
}

/** What backward is given: forward's inputs and the two of its results that are saved. */
const saved = <T extends object>(x: T, {output, inverse}: PlainOutputs) => ({...x, output, inverse});

function expectAlike(got: object, want: object): void {
  const numbers = want as {[name: string]: Float32Array};
  for (const [name, values] of Object.entries(got as {[name: string]: Float32Array})) {
    expect([name, difference(values, numbers[name], FLOAT32)]).toEqual([name, null]);
  }
}

const size = (max: number) => fc.integer({min: 1, max});

describe('the SIMD core on arrays', () => {
  test('is what runs here', () => expect(hasSimd()).toBe(true));

  test('equals plain JavaScript for any sizes and options, forward and backward', () => {
    const shape = fc.record({
      B: size(2),
      H: size(5),
      N: size(70),
      Nq: size(70),
      r: size(21),
      d: size(21),
      featureMap: fc.constantFrom(...POINTWISE_MAPS),
      dataFormat: fc.constantFrom<DataFormat>('BHND', 'BNHD'),
      causal: fc.boolean(),
      normalize: fc.boolean(),
      hasMask: fc.boolean(),
      hasState: fc.boolean(),
      seed: size(1000),
    });
    const property = fc.property(shape, ({B, H, N, Nq, r, d, seed, ...options}) => {
      // Denominators near 0 of either sign make the comparison a matter of chance.
      const normalize = options.normalize && options.featureMap !== 'identity';
      const dims = {B, H, Nq: options.causal ? N : Nq, Nk: N, r, d};
      const attrs = {...ATTRS, ...options, normalize, scale: 0.5, eps: 1e-2};
      const x = arraysFor(dims, seed);
      const forward = forwardOfArrays(x, dims, attrs);
      expectAlike(forward, plainForward(x, dims, attrs));
      const got = backwardOfArrays(saved(x, forward), dims, attrs);
      expectAlike(got, plainBackward(x, forward, x, dims, attrs));
    });
    fc.assert(property, {numRuns: 60, seed: 7});
  });

  test('carries the state through staging blocks of several heads', () => {
    for (const dataFormat of ['BHND', 'BNHD'] as const) {
      const dims = {B: 1, H: 9, Nq: 60, Nk: 60, r: 64, d: 64};
      const attrs = {...ATTRS, dataFormat, hasState: true, hasMask: true};
      const x = arraysFor(dims, 3);
      const forward = forwardOfArrays(x, dims, attrs);
      expectAlike(forward, plainForward(x, dims, attrs));
      expectAlike(
        backwardOfArrays(saved(x, forward), dims, attrs),
        plainBackward(x, forward, x, dims, attrs),
      );
    }
  });

  test('stages through about 1 MB whatever the length', () => {
    for (const N of [64, 4096]) {
      const dims = {B: 1, H: 8, Nq: N, Nk: N, r: 64, d: 64};
      const rows = new Float32Array(8 * N * 64).fill(0.1);
      const state = new Float32Array(8 * 64 * 64);
      const x = {q: rows, k: rows, v: rows, mask: rows, s: state, z: state};
      const forward = forwardOfArrays(x, dims, ATTRS);
      backwardOfArrays(saved({...x, dOutput: rows, dS: state, dZ: state}, forward), dims, ATTRS);
      expect(stagingBytes()).toBeGreaterThan(0);
      expect(stagingBytes()).toBeLessThan(1.5 * 2 ** 20);
    }
  });

  test('gives the same bits after its memory was full of NaN', () => {
    const dims = {B: 1, H: 3, Nq: 37, Nk: 37, r: 6, d: 9};
    const x = arraysFor(dims, 5);
    const run = (values: typeof x) => {
      const forward = forwardOfArrays(values, dims, ATTRS);
      return {...forward, ...backwardOfArrays(saved(values, forward), dims, ATTRS)};
    };
    const clean = run(x);
    const poisoned = Object.fromEntries(
      Object.entries(x).map(([name, values]) => [name, values.map(() => Number.NaN)]),
    ) as typeof x;
    run(poisoned);
    expect(run(x)).toEqual(clean);
  });

  test('keeps the state of 20,000 tokens within 1e-6 of double precision', () => {
    const dims = {B: 1, H: 1, Nq: 20000, Nk: 20000, r: 4, d: 5};
    const {uniform} = random(2);
    const make = (count: number) => Float32Array.from({length: count}, () => 2 * uniform() - 1);
    const [q, k, v] = [80000, 80000, 100000].map(make);
    const none = new Float32Array(1);
    const x = {q, k, v, mask: none, s: none, z: none};
    const got = stagedForward(x, dims, ATTRS) as {s: Float32Array; z: Float32Array};
    const s = new Float64Array(20);
    const z = new Float64Array(4);
    for (let n = 0; n < dims.Nk; n++) {
      for (let i = 0; i < 4; i++) {
        const phi = pointwiseScalar('elu', x.k[n * 4 + i]);
        z[i] += phi;
        for (let j = 0; j < 5; j++) {
          s[i * 5 + j] += phi * x.v[n * 5 + j];
        }
      }
    }
    const tight = {rms: 1e-6, max: 2e-6};
    expect(difference(got.s, s, tight)).toBeNull();
    expect(difference(got.z, z, tight)).toBeNull();
  });

  describe.each(POINTWISE_MAPS)('%s', (featureMap) => {
    const dims = {B: 1, H: 2, Nq: 9, Nk: 9, r: 5, d: 6};
    const attrs = {...ATTRS, featureMap, normalize: false};
    const at = (n: number, h: number, width: number) => (n * dims.H + h) * width;

    test.each(['q', 'k', 'v'] as const)('NaN in %s reaches outputs, and none before it', (name) => {
      const x = arraysFor(dims, 8);
      const before = forwardOfArrays(x, dims, attrs).output;
      const width = name === 'v' ? dims.d : dims.r;
      x[name][at(4, 1, width) + 2] = Number.NaN;
      const after = forwardOfArrays(x, dims, attrs).output;
      expect(after.subarray(0, at(4, 1, dims.d))).toEqual(before.subarray(0, at(4, 1, dims.d)));
      const column = name === 'v' ? 2 : 0;
      expect(after[at(4, 1, dims.d) + column]).toBeNaN();
      expect(after[at(8, 0, dims.d)]).toBe(before[at(8, 0, dims.d)]);
      if (name !== 'q') {
        expect(after[at(8, 1, dims.d) + column]).toBeNaN();
      }
    });

    test('numbers from -100 to 88 and infinities map as in double precision', () => {
      const inputs = [-100, -88, -87, -20, -1, -1e-3, -1e-20, 0, 1e-20, 0.5, 3, 88].map(Math.fround);
      const special = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
      const r = inputs.length + special.length;
      const one = {B: 1, H: 1, Nq: 1, Nk: 1, r, d: 1};
      const x: PlainInputs = {...arraysFor(one, 1), k: Float32Array.from([...inputs, ...special])};
      const {z} = forwardOfArrays(x, one, attrs);
      const want = [...x.k].map((value) => Math.fround(pointwiseScalar(featureMap, value)));
      // Below 1.2e-38 elu gives 0.
      inputs.forEach((_, i) => {
        expect(Math.abs(z[i] - want[i])).toBeLessThanOrEqual(5e-7 * Math.abs(want[i]) + 1.2e-38);
      });
      expect([...z.subarray(inputs.length)]).toEqual(want.slice(inputs.length));
    });
  });
});
