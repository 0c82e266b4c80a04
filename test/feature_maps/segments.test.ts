/** Maps of many features run by segments: the same numbers as mapping everything first, in a fraction of the memory. */
import * as tf from '@tensorflow/tfjs-core';
import {type FeatureMap, featureMaps, linearAttention} from '../../index';
import type {FeatureMapContext} from '../../ops';
import {segmentLength} from '../../ops/segmented_attention';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {randomNumbers} from '../helpers/random_numbers';

const [r, d] = [8, 3];
const N = 300; // three segments of 128 tokens, the last one short

/** Five features for each number, which depend on positions and weights. */
const positional: FeatureMap = {
  name: 'positional',
  dim: (inputDim) => 5 * inputDim,
  weights: (inputDim) => [{name: 'gain', shape: [inputDim], initializer: 'ones', trainable: true}],
  queries: (x, ctx) => fivefold(x, ctx),
  keys: (x, ctx) => fivefold(x, ctx),
  getConfig: () => ({}),
};

function fivefold(x: tf.Tensor, {sequenceAxis = 2, offset = 0, positions, weights}: FeatureMapContext = {}) {
  const [batch, length] = [x.shape[0], x.shape[sequenceAxis]];
  const at = positions ?? Int32Array.from({length: batch * length}, (_, i) => offset + (i % length));
  const shape = x.shape.map((size, axis) => (axis === 0 || axis === sequenceAxis ? size : 1));
  const place = tf.reshape(tf.tensor(Float32Array.from(at, (p) => 1 + 0.5 * Math.sin(p))), shape);
  const y = tf.mul(x, weights!.gain);
  const shifted = [1, 2, -1].map((shift) => tf.add(tf.square(tf.sub(y, shift)), 0.1));
  return tf.concat([tf.square(y), tf.mul(tf.square(x), place), ...shifted], 3);
}

interface Options {
  causal: boolean;
  dataFormat?: 'BHND' | 'BNHD';
  normalize?: boolean;
  mask?: boolean;
  state?: boolean;
  positions?: boolean;
  Nq?: number;
}

const numbers = (shape: number[], seed: number) =>
  tf.tensor(randomNumbers(tf.util.sizeFromShape(shape), seed), shape);

/** Output, state and gradients, of the op and of the map followed by the op on its features. */
function bothWays(map: FeatureMap, options: Options): {name: string; got: tf.Tensor; want: tf.Tensor}[] {
  const {causal, dataFormat = 'BHND', normalize = true, Nq = N} = options;
  const [B, H] = [2, 1];
  const shape = (n: number, width: number) => (dataFormat === 'BHND' ? [B, H, n, width] : [B, n, H, width]);
  const features = map.dim(r);
  const declared = map.weights?.(r, H) ?? [];
  const inputs = [
    numbers(shape(Nq, r), 1),
    numbers(shape(N, r), 2),
    numbers(shape(N, d), 3),
    ...(options.state ? [numbers([B, H, features, d], 4), tf.abs(numbers([B, H, features], 5))] : []),
    ...declared.map(({shape}, i) => tf.add(1, tf.mul(numbers(shape, 6 + i), 0.1))),
  ];
  const mask = options.mask
    ? tf.tensor(
        Array.from({length: B * N}, (_, i) => (i % 7 === 3 || i % N < 130 ? 0 : 1)),
        [B, N],
      )
    : undefined;
  const positions = options.positions ? Int32Array.from({length: B * N}, (_, i) => (i * 5) % 11) : undefined;
  const [sequenceAxis, headAxis] = dataFormat === 'BHND' ? [2, 1] : [1, 2];
  const parts = (xs: tf.Tensor[]) => {
    const [q, k, v, ...rest] = xs;
    const state = options.state ? {initialState: {s: rest[0], z: rest[1]}} : {};
    const given = rest.slice(options.state ? 2 : 0);
    return {q, k, v, state, weights: Object.fromEntries(declared.map(({name}, i) => [name, given[i]]))};
  };
  const common = {causal, dataFormat, normalize, eps: 1e-6, returnState: true, ...(mask && {mask})} as const;
  const bySegments = (xs: tf.Tensor[]) => {
    const {q, k, v, state, weights} = parts(xs);
    const more = {...(positions && {positions}), ...(declared.length > 0 && {featureMapWeights: weights})};
    return linearAttention(q, k, v, {
      ...common,
      ...state,
      ...more,
      featureMap: map,
      offset: positions ? 0 : 2,
    });
  };
  const atOnce = (xs: tf.Tensor[]) => {
    const {q, k, v, state, weights} = parts(xs);
    const ctx = {sequenceAxis, headAxis, weights, offset: 2, ...(positions && {positions})};
    return linearAttention(map.queries(q, ctx), map.keys(k, ctx), v, {
      ...common,
      ...state,
      featureMap: 'identity',
    });
  };
  const upstream = [numbers(shape(Nq, d), 7), numbers([B, H, features, d], 8), numbers([B, H, features], 9)];
  const results = [bySegments, atOnce].map((run) => {
    const loss = (...xs: tf.Tensor[]) => {
      const {output, state} = run(xs);
      return tf.addN([output, state.s, state.z].map((x, i) => tf.sum(tf.mul(x as tf.Tensor, upstream[i]))));
    };
    const {output, state} = run(inputs);
    return [output, state.s, state.z, ...tf.grads(loss as (...xs: tf.Tensor[]) => tf.Scalar)(inputs)];
  });
  const names = ['output', 's', 'z', ...inputs.map((_, i) => `gradient of input ${i}`)];
  return names.map((name, i) => ({name, got: results[0][i] as tf.Tensor, want: results[1][i] as tf.Tensor}));
}

describeOnBackends('attention by segments', (backend) => {
  const all: [string, FeatureMap][] = [
    ['taylor2', featureMaps.taylor2()],
    ['rebased', featureMaps.rebased()],
    ['favor', featureMaps.favor({numFeatures: 40, stabilize: false})],
    ['a map of positions and weights', positional],
  ];
  // The cpu backend is slow, and what differs between maps is not the backend's.
  const maps = backend === 'cpu' ? [all[0], all[3]] : all;
  const ways: [string, Options][] = [
    ['causal', {causal: true}],
    ['non-causal', {causal: false}],
    ['causal, from a state, with a mask', {causal: true, state: true, mask: true}],
    ['non-causal, from a state, with a mask', {causal: false, state: true, mask: true}],
    ['causal in [B,N,H,.], unnormalised', {causal: true, dataFormat: 'BNHD', normalize: false}],
    ['non-causal in [B,N,H,.], fewer queries than keys', {causal: false, dataFormat: 'BNHD', Nq: 60}],
    ['causal with positions of each row', {causal: true, positions: true}],
  ];
  test.each(maps.flatMap(([name, map]) => ways.map(([way, options]) => [name, way, map, options] as const)))(
    '%s, %s: output, state and every gradient are those of mapping everything first',
    async (_, __, map, options) => {
      expect(segmentLength(map, {r, d, Nq: options.Nq ?? N, Nk: N})).toBe(128);
      await expectNoLeak(() =>
        tf.tidy(() => {
          for (const {name, got, want} of bothWays(map, options)) {
            const fault = difference(got.dataSync(), want.dataSync(), FLOAT32, 2e-6);
            expect(fault === null ? null : `${name}: ${fault}`).toBeNull();
          }
        }),
      );
    },
  );

  test('can be differentiated twice', () => {
    tf.tidy(() => {
      const map = featureMaps.taylor2();
      const [q, k, v] = [r, r, d].map((width, i) => numbers([1, 1, N, width], i));
      const penalty = (run: (q: tf.Tensor) => tf.Tensor) =>
        tf.grad((x: tf.Tensor) =>
          tf.sum(tf.square(tf.grad((y: tf.Tensor) => tf.sum(tf.square(run(y))) as tf.Scalar)(x))),
        )(q);
      const got = penalty((x) => linearAttention(x, k, v, {featureMap: map, causal: true}));
      const want = penalty((x) =>
        linearAttention(map.queries(x), map.keys(k), v, {featureMap: 'identity', causal: true}),
      );
      expect(difference(got.dataSync(), want.dataSync(), FLOAT32)).toBeNull();
    });
  });

  test('later tokens change no earlier output, and running in two parts equals running once', () => {
    tf.tidy(() => {
      const options = {featureMap: 'taylor2', causal: true} as const;
      const [q, k, v] = [r, r, d].map((width, i) => numbers([1, 2, N, width], i));
      const whole = linearAttention(q, k, v, {...options, returnState: true});
      const part = (x: tf.Tensor, from: number, size: number) =>
        tf.slice(x, [0, 0, from, 0], [-1, -1, size, -1]);
      for (const t of [1, 127, 128, 129, 200]) {
        const first = linearAttention(part(q, 0, t), part(k, 0, t), part(v, 0, t), {
          ...options,
          returnState: true,
        });
        const second = linearAttention(part(q, t, N - t), part(k, t, N - t), part(v, t, N - t), {
          ...options,
          initialState: first.state,
          returnState: true,
        });
        const joined = tf.concat([first.output, second.output], 2);
        expect(difference(joined.dataSync(), whole.output.dataSync(), FLOAT32)).toBeNull();
        expect(difference(second.state.s.dataSync(), whole.state.s.dataSync(), FLOAT32)).toBeNull();
      }
      const changed = tf.concat([part(k, 0, 250), tf.mul(part(k, 250, 50), 3)], 2);
      const before = (keys: tf.Tensor) => part(linearAttention(q, keys, v, options), 0, 250).dataSync();
      expect(before(changed)).toEqual(before(k));
    });
  });

  test('memory of forward and training grows with N (r + d), not with the features', async () => {
    const [H, width] = [1, 8];
    const run = (length: number, train: boolean) => {
      const [q, k, v] = [1, 2, 3].map((seed) => numbers([1, H, length, width], seed));
      const attend = (x: tf.Tensor, y: tf.Tensor, w: tf.Tensor) =>
        linearAttention(x, y, w, {featureMap: 'taylor2', causal: true});
      const result = train
        ? tf.grads((x, y, w) => tf.sum(attend(x, y, w)) as tf.Scalar)([q, k, v])
        : [attend(q, k, v)];
      tf.dispose([q, k, v]);
      return result;
    };
    for (const train of [false, true]) {
      const peaks: number[] = [];
      // Long enough for what grows with the length to be more than what one segment takes.
      for (const length of [2048, 8192]) {
        let results: tf.Tensor[] = [];
        const profile = await tf.profile(() => {
          results = run(length, train);
          return results;
        });
        tf.dispose(results);
        peaks.push(profile.peakBytes);
        const widest = profile.kernels.flatMap(({outputShapes}) => outputShapes as number[][]);
        const most = Math.max(...widest.map((shape) => shape.reduce((a, b) => a * b, 1)));
        expect(most).toBeLessThanOrEqual(H * length * width);
      }
      // Floats a token: the slope leaves out what one segment and the backend take.
      const perToken = (peaks[1] - peaks[0]) / 4 / 6144 / H;
      // Sequences of [H,N,width] at the peak, as tfjs counts, which takes a clone for a copy. Forward: q, k, v; the
      // pieces of the output and the output. Training: q, k, v and the tape's clones of them; the output with the tape's
      // clone, and its gradient; dq, dk, dv in pieces, and one of them joined. Features would be 2 x 45 floats more.
      expect(perToken).toBeLessThanOrEqual((train ? 13 : 5) * width);
    }
  });
});
