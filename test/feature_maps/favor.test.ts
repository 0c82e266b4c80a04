/** FAVOR+: the estimator's moments, its projection, and the rules that keep causal use exact. */
import * as tf from '@tensorflow/tfjs-core';
import {featureMaps, linearAttention} from '../../index';
import type {FavorConfig} from '../../ops/feature_maps';
import {drawProjection} from '../../ops/feature_maps/projection';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {randomNumbers} from '../helpers/random_numbers';

const drawn = new Map<string, Float32Array>();

/** Drawing takes most of the time here, and the same directions serve several estimates. */
function directions(draws: number, d: number, orthogonal: boolean): Float32Array {
  const key = `${draws} ${d} ${orthogonal}`;
  const known = drawn.get(key) ?? drawProjection(draws * d, d, 1, orthogonal);
  drawn.set(key, known);
  return known;
}

/** Estimates of exp(x.y) by `draws` independent sets of d directions, through the map. */
function estimates(
  x: number[],
  y: number[],
  {draws, kind = 'positive', orthogonal = true}: FavorConfig & {draws: number},
): number[] {
  const d = x.length;
  return tf.tidy(() => {
    const projection = tf.tensor(directions(draws, d, orthogonal), [draws * d, d]);
    const map = featureMaps.favor({projection, kind, stabilize: false});
    // The map estimates exp(q.k / sqrt(d)).
    const [q, k] = [x, y].map((values) => tf.mul(tf.tensor(values, [1, 1, 1, d]), d ** 0.25));
    const products = tf.mul(map.queries(q), map.keys(k));
    const halves = map.dim(d) / (draws * d);
    const sums = tf.sum(tf.reshape(products, [halves, draws, d]), [0, 2]);
    return Array.from(tf.mul(sums, draws).dataSync());
  });
}

const mean = (list: number[]) => list.reduce((a, b) => a + b, 0) / list.length;
const meanSquare = (list: number[], truth: number) => mean(list.map((x) => (x - truth) ** 2));
const dot = (x: number[], y: number[]) => x.reduce((sum, a, i) => sum + a * y[i], 0);
/** Vectors of d numbers of the given length, the second at this cosine to the first. */
function pair(d: number, length: number, cosine: number): [number[], number[]] {
  const x = Array.from({length: d}, (_, i) => (i % 2 === 0 ? 1 : 0.5));
  const across = Array.from({length: d}, (_, i) => (i % 2 === 0 ? -0.5 : 1) * (i < 2 ? 1 : 0.3));
  const along = dot(across, x) / dot(x, x);
  const other = across.map((a, i) => a - along * x[i]);
  const unit = (v: number[]) => v.map((a) => a / Math.sqrt(dot(v, v)));
  const [u, w] = [unit(x), unit(other)];
  return [
    u.map((a) => length * a),
    u.map((a, i) => length * (cosine * a + Math.sqrt(1 - cosine ** 2) * w[i])),
  ];
}

describe('the estimator of FAVOR+', () => {
  beforeAll(async () => {
    await tf.setBackend('wasm');
  });

  // Raw QR without the signs of R is off by -46 % at d = 8 and by -31 % at d = 16.
  test.each([
    ['positive', 8, 0.46],
    ['positive', 16, 0.31],
    ['hyperbolic', 8, 0.46],
    ['hyperbolic', 16, 0.31],
  ] as const)('%s features are unbiased at x = y = (1..1)/sqrt(d), d = %i', (kind, d, bias) => {
    const x = Array(d).fill(1 / Math.sqrt(d));
    const got = estimates(x, x, {draws: 3000, kind});
    const error = Math.sqrt(meanSquare(got, mean(got)) / got.length);
    expect(Math.abs(mean(got) - Math.E)).toBeLessThan(4 * error);
    expect(4 * error).toBeLessThan(bias * Math.E);
  });

  test('trig features are exact at x = y', () => {
    const x = Array(8).fill(1 / Math.sqrt(8));
    for (const estimate of estimates(x, x, {draws: 10, kind: 'trig'})) {
      expect(estimate).toBeCloseTo(Math.E, 4);
    }
  });

  test.each([
    [0.5, -0.8],
    [0.7, 0],
    [0.5, 0.5],
  ])(
    'mean squared errors are those of Lemma 2 within 5 %% at |x| = |y| = %d, cosine %d',
    (length, cosine) => {
      const [d, m] = [16, 16];
      const [x, y] = pair(d, length, cosine);
      const SM = Math.exp(dot(x, y));
      const plus = dot(x, x) + dot(y, y) + 2 * dot(x, y);
      const minus = dot(x, x) + dot(y, y) - 2 * dot(x, y);
      const positive = (Math.exp(plus) * SM ** 2 * (1 - Math.exp(-plus))) / m;
      const lemma = {
        trig: (Math.exp(plus) * SM ** -2 * (1 - Math.exp(-minus)) ** 2) / (2 * m),
        positive,
        hyperbolic: ((1 - Math.exp(-plus)) / 2) * positive,
      };
      for (const kind of ['trig', 'positive', 'hyperbolic'] as const) {
        const got = meanSquare(estimates(x, y, {draws: 20000, kind, orthogonal: false}), SM);
        expect([kind, Math.abs(got / lemma[kind] - 1) < 0.05 || got / lemma[kind]]).toEqual([kind, true]);
      }
    },
  );

  test('orthogonal directions have a smaller mean squared error than independent ones (Theorem 2)', () => {
    const [x, y] = pair(16, 0.5, -0.8);
    const SM = Math.exp(dot(x, y));
    const got = meanSquare(estimates(x, y, {draws: 20000}), SM);
    expect(got).toBeLessThan(0.98 * 4.41e-3); // of independent ones
    expect(Math.abs(got / 4.24e-3 - 1)).toBeLessThan(0.03);
  });
});

describe('the projection of FAVOR+', () => {
  test.each([3, 16, 64])('has orthogonal rows within blocks of r = %i, with norms of normal vectors', (r) => {
    const rows = 2 * r + 1;
    const W = drawProjection(rows, r, 7, true);
    const product = (a: number, b: number) => {
      let sum = 0;
      for (let j = 0; j < r; j++) sum += W[a * r + j] * W[b * r + j];
      return sum;
    };
    let worst = 0;
    let squares = 0;
    for (let a = 0; a < rows; a++) {
      squares += product(a, a);
      for (let b = 0; b < a; b++) {
        if (Math.floor(a / r) === Math.floor(b / r)) {
          worst = Math.max(worst, Math.abs(product(a, b)) / Math.sqrt(product(a, a) * product(b, b)));
        }
      }
    }
    expect(worst).toBeLessThan(1e-4);
    // |w|^2 is chi squared: mean r, variance 2r.
    expect(Math.abs(squares / rows - r)).toBeLessThan(4 * Math.sqrt((2 * r) / rows));
  });

  test('is the same for the same seed, and another for another', () => {
    expect(drawProjection(9, 4, 5, true)).toEqual(drawProjection(9, 4, 5, true));
    expect(drawProjection(9, 4, 5, true)).not.toEqual(drawProjection(9, 4, 6, true));
  });

  test('has ceil(r ln r) rows unless said, and is rebuilt from the map s configuration', () => {
    const map = featureMaps.favor({seed: 3});
    expect([map.dim(16), featureMaps.favor({kind: 'hyperbolic'}).dim(16), map.dim(1)]).toEqual([45, 90, 1]);
    const given = featureMaps.favor({projection: [[1, 2], [3, 4], [5, 6]]}); // biome-ignore format: a matrix
    for (const original of [map, given]) {
      const again = featureMaps.favor(JSON.parse(JSON.stringify(original.getConfig())));
      expect(again.weights?.(2, 1)).toEqual(original.weights?.(2, 1));
    }
  });
});

const KINDS = ['positive', 'hyperbolic', 'trig', 'relu'] as const;

describeOnBackends('FAVOR+ attention', () => {
  const x = (shape: number[], seed: number, size = 1) =>
    tf.mul(tf.tensor(randomNumbers(tf.util.sizeFromShape(shape), seed), shape), size);

  test.each(KINDS)('%s: three times the last key changes earlier outputs by exactly 0', (kind) => {
    tf.tidy(() => {
      const featureMap = featureMaps.favor({kind, numFeatures: 32});
      const [q, k, v] = [1, 2, 3].map((seed) => x([2, 2, 20, 8], seed));
      const factor = tf.tensor([...Array(19).fill(1), 3], [1, 1, 20, 1]);
      const run = (keys: tf.Tensor) =>
        tf.slice(linearAttention(q, keys, v, {featureMap, causal: true}), [0, 0, 0, 0], [-1, -1, 19, -1]);
      expect(run(tf.mul(k, factor)).dataSync()).toEqual(run(k).dataSync());
    });
  });

  test.each(KINDS)('%s: an example comes out the same alone and in a batch', (kind) => {
    tf.tidy(() => {
      const featureMap = featureMaps.favor({kind, numFeatures: 32});
      const [q, k, v] = [1, 2, 3].map((seed) => x([3, 2, 20, 8], seed));
      for (const causal of [true, false]) {
        const together = linearAttention(q, k, v, {featureMap, causal});
        const first = (t: tf.Tensor) => tf.slice(t, [1, 0, 0, 0], [1, -1, -1, -1]);
        const alone = linearAttention(first(q), first(k), first(v), {featureMap, causal});
        expect(alone.dataSync()).toEqual(first(together).dataSync());
      }
    });
  });

  test.each(['positive', 'hyperbolic'] as const)(
    '%s: outputs and gradients are finite at |k| = 100 and |q| = 100',
    (kind) => {
      tf.tidy(() => {
        for (const [r, causal] of [
          [4, true],
          [16, true],
          [64, false],
        ] as const) {
          // biome-ignore format: pairs
          const unit = (t: tf.Tensor) => tf.div(t, tf.norm(t, 2, 3, true));
          const q = tf.mul(unit(x([1, 2, 12, r], 1)), 100);
          const k = tf.mul(
            unit(x([1, 2, 12, r], 2)),
            tf.tensor([...Array(6).fill(1), ...Array(6).fill(100)], [1, 1, 12, 1]),
          );
          const v = x([1, 2, 12, 5], 3);
          const featureMap = featureMaps.favor({kind});
          const loss = (...xs: tf.Tensor[]) =>
            tf.sum(tf.square(linearAttention(xs[0], xs[1], xs[2], {featureMap, causal}))) as tf.Scalar;
          const all = [linearAttention(q, k, v, {featureMap, causal}), ...tf.grads(loss)([q, k, v])];
          for (const tensor of all) {
            expect(tensor.dataSync().every(Number.isFinite)).toBe(true);
          }
          const small = linearAttention(q, tf.mul(unit(k), 100), v, {featureMap, causal});
          expect(small.dataSync().every(Number.isFinite)).toBe(true);
        }
      });
    },
  );

  test('trig refuses keys whose features would overflow, and leaks nothing', async () => {
    const featureMap = featureMaps.favor({kind: 'trig'});
    const q = x([1, 1, 4, 16], 1);
    const k = tf.fill([1, 1, 4, 16], 25); // |k| = 100
    await expectNoLeak(() => {
      expect(() => linearAttention(q, k, q, {featureMap})).toThrow(
        "featureMaps.favor: expected |x|^2 / (2 sqrt(r)) of at most 80 with kind 'trig', whose features grow as its exponential; got 1.25e+3.",
      );
    });
    tf.dispose([q, k]);
  });

  test('stabilised queries give the same attention as unscaled ones', () => {
    tf.tidy(() => {
      const [q, k, v] = [1, 2, 3].map((seed) => x([1, 2, 9, 8], seed));
      for (const kind of KINDS) {
        const [scaled, plain] = [true, false].map((stabilize) =>
          linearAttention(q, k, v, {featureMap: featureMaps.favor({kind, stabilize}), causal: true}),
        );
        expect(tf.max(tf.abs(tf.sub(scaled, plain))).dataSync()[0]).toBeLessThan(1e-4);
      }
    });
  });
});
