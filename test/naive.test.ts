/** The oracle itself: its gradients against central differences, and its outputs against a hand-made example. */
import {type NaiveAttrs, type NaiveInputs, naiveBackward, naiveForward} from '../src/linear_attention/naive';
import type {Dims} from '../src/linear_attention/spec';
import {POINTWISE_MAPS} from '../src/pointwise';
import {random} from '../src/random';
import {centralDifferences} from './helpers/finite_differences';

const DIMS: Dims = {B: 2, H: 2, Nq: 4, Nk: 4, r: 3, d: 2};
const ATTRS: NaiveAttrs = {
  causal: true,
  featureMap: 'elu',
  normalize: true,
  eps: 1e-3,
  scale: 1,
  dataFormat: 'BHND',
};

const generator = random(7);
const numbers = (n: number, low = -1, high = 1): Float64Array =>
  Float64Array.from({length: n}, () => low + (high - low) * generator.uniform());

function inputsFor(
  {B, H, Nq, Nk, r, d}: Dims,
  mixedSigns: boolean,
): NaiveInputs & {s: Float64Array; z: Float64Array} {
  return {
    // Away from 0, where relu has no derivative, and mostly positive (identity: all), so that denominators are not tiny.
    q: numbers(B * H * Nq * r, 0.1, 1.5).map((x, i) => (mixedSigns && i % 5 === 0 ? -x : x)),
    k: numbers(B * H * Nk * r, 0.1, 1.5).map((x, i) => (mixedSigns && i % 4 === 0 ? -x : x)),
    v: numbers(B * H * Nk * d),
    mask: Float64Array.from({length: B * Nk}, (_, i) => (i % 3 === 1 ? 0 : 1)),
    s: numbers(B * H * r * d),
    z: numbers(B * H * r, 0.5, 1),
  };
}

const CASES: [string, Partial<Dims>, Partial<NaiveAttrs>][] = [
  ...POINTWISE_MAPS.flatMap((featureMap): [string, Partial<Dims>, Partial<NaiveAttrs>][] => [
    [`causal with the ${featureMap} map`, {}, {featureMap}],
    [`non-causal with the ${featureMap} map`, {Nq: 3}, {featureMap, causal: false}],
  ]),
  ['unnormalised', {}, {normalize: false, scale: 0.7}],
  ['of [B,N,H,.] inputs', {H: 3}, {dataFormat: 'BNHD'}],
];

describe('the oracle', () => {
  test.each(CASES)('has the gradients that central differences give: %s', (_, dims, attrs) => {
    const sizes = {...DIMS, ...dims};
    const settings = {...ATTRS, ...attrs};
    const {B, H, Nq, r, d} = sizes;
    const inputs = inputsFor(sizes, settings.featureMap !== 'identity');
    const cotangents = {
      dOutput: numbers(B * H * Nq * d),
      dS: numbers(B * H * r * d),
      dZ: numbers(B * H * r),
    };
    const dot = (a: Float64Array, b: Float64Array) => a.reduce((sum, x, i) => sum + x * b[i], 0);
    const gradients = naiveBackward(inputs, sizes, settings, cotangents);
    for (const name of ['q', 'k', 'v', 's', 'z'] as const) {
      const numeric = centralDifferences((x) => {
        const {output, s, z} = naiveForward({...inputs, [name]: x}, sizes, settings);
        return dot(output, cotangents.dOutput) + dot(s, cotangents.dS) + dot(z, cotangents.dZ);
      }, inputs[name]);
      const analytic = gradients[`d${name}`];
      const worst = Math.max(...analytic.map((g, i) => Math.abs(g - numeric[i])));
      expect([name, worst < 1e-7]).toEqual([name, true]);
    }
  });

  test('weighs three values by hand: o = (w1 v1 + w2 v2 + w3 v3) / (w1 + w2 + w3)', () => {
    // Features are given (identity): q = [1, 2], keys [1, 0], [0, 1], [1, 1] weigh 1, 2, 3.
    const {output} = naiveForward(
      {q: [1, 2], k: [1, 0, 0, 1, 1, 1], v: [10, 20, 30]},
      {B: 1, H: 1, Nq: 1, Nk: 3, r: 2, d: 1},
      {...ATTRS, causal: false, featureMap: 'identity', eps: 0},
    );
    expect(output[0]).toBeCloseTo((1 * 10 + 2 * 20 + 3 * 30) / 6, 12);
  });
});
