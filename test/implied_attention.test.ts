import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {impliedAttention, linearAttention} from '../ops';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {take, valuesOf} from './helpers/numbers';
import {randomNumbers} from './helpers/random_numbers';

const [B, H, N, r] = [2, 3, 6, 4];
const inputs = (Nq = N): [tf.Tensor, tf.Tensor] => [
  tf.tensor(randomNumbers(B * H * Nq * r, 1), [B, H, Nq, r]),
  tf.tensor(randomNumbers(B * H * N * r, 2), [B, H, N, r]),
];
const MASK = [
  [0, 0, 1, 1, 0, 1],
  [0, 0, 0, 0, 0, 0],
];

describeOnBackends('impliedAttention', () => {
  test.each([
    ['all keys', {}],
    ['causal', {causal: true}],
    ['masked', {mask: MASK}],
    ['masked and causal', {mask: MASK, causal: true}],
    ['relu', {featureMap: 'relu'}],
    ['exp, causal', {featureMap: 'exp', causal: true}],
  ])('times the values is linearAttention: %s', (_, options) => {
    tf.tidy(() => {
      const [q, k] = inputs();
      const v = tf.tensor(randomNumbers(B * H * N * 5, 3), [B, H, N, 5]);
      const weights = impliedAttention(q, k, options);
      expect(weights.shape).toEqual([B, H, N, N]);
      const got = tf.matMul(weights, v).dataSync();
      expect(difference(got, linearAttention(q, k, v, options).dataSync(), FLOAT32)).toBeNull();
    });
  });

  test('is phi(q).phi(k) over its row sum, by hand', () => {
    const weights = valuesOf(() =>
      impliedAttention([[[1], [2]]], [[[1], [-1]]], {featureMap: 'elu', eps: 0}),
    );
    const phi = [2, Math.exp(-1)];
    const want = phi.map((x) => x / (phi[0] + phi[1]));
    expect(difference(weights, [...want, ...want], FLOAT32)).toBeNull();
  });

  test('rows sum to 1, hidden keys have weight 0, rows without a denominator are 0', () => {
    tf.tidy(() => {
      const [q, k] = inputs();
      const rows = tf.sum(impliedAttention(q, k, {causal: true}), -1).dataSync();
      expect(rows.every((sum) => Math.abs(sum - 1) < 1e-5)).toBe(true);
      const masked = impliedAttention(q, k, {causal: true, mask: MASK}).dataSync();
      masked.forEach((weight, i) => {
        const [b, row, column] = [Math.floor(i / (H * N * N)), Math.floor(i / N) % N, i % N];
        const hidden = column > row || MASK[b][column] === 0;
        expect(hidden ? weight === 0 : weight > 0).toBe(true);
      });
    });
  });

  test('takes fewer queries than keys, rank 3, NaN under a mask, and empty inputs', () => {
    tf.tidy(() => {
      expect(impliedAttention(...inputs(2)).shape).toEqual([B, H, 2, N]);
      const three = impliedAttention(tf.ones([B, 2, r]), tf.ones([B, 3, r]));
      expect(three.shape).toEqual([B, 2, 3]);
      const holes = impliedAttention([[[1]]], [[[1], [Number.NaN]]], {mask: [[1, 0]], eps: 0});
      expect(Array.from(holes.dataSync())).toEqual([1, 0]);
      expect(impliedAttention(tf.ones([1, 1, 0, 2]), tf.ones([1, 1, 3, 2])).shape).toEqual([1, 1, 0, 3]);
    });
  });

  test('leaves nothing behind', async () => {
    const [q, k] = inputs();
    await expectNoLeak(() => take(impliedAttention(q, k, {mask: MASK, causal: true})));
    tf.dispose([q, k]);
  });
});
