/** What the features of second degree promise beyond the golden file: their similarity, one number, three derivatives. */
import * as tf from '@tensorflow/tfjs-core';
import {featureMaps} from '../../index';
import {sequencePiece} from '../../src/sequence_piece';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {randomNumbers} from '../helpers/random_numbers';

describeOnBackends('taylor2', () => {
  test.each([1, 2, 3, 8])('phi(q).phi(k) = 1 + s + s^2 / 2 with s = q.k / sqrt(r), r = %i', async (r) => {
    await expectNoLeak(() =>
      tf.tidy(() => {
        const map = featureMaps.taylor2();
        const [q, k] = [1, 2].map((seed) => tf.tensor(randomNumbers(5 * r, seed), [1, 1, 5, r]));
        const s = tf.mul(tf.sum(tf.mul(q, k), 3), 1 / Math.sqrt(r));
        const want = tf.add(tf.add(1, s), tf.mul(tf.square(s), 0.5)).dataSync();
        const phi = map.queries(q);
        expect(phi.shape[3]).toBe(1 + r + (r * (r + 1)) / 2);
        expect(difference(tf.sum(tf.mul(phi, map.keys(k)), 3).dataSync(), want, FLOAT32)).toBeNull();
      }),
    );
  });

  test('has derivatives of every order: those of the same polynomial in stock ops', () => {
    tf.tidy(() => {
      const r = 3;
      const map = featureMaps.taylor2();
      const x = tf.tensor([0.3, -1, 0.7], [1, 1, 1, r]);
      const weights = tf.tensor(randomNumbers(10, 3), [1, 1, 1, 10]);
      const columns = (y: tf.Tensor) => [0, 1, 2].map((i) => tf.slice(y, [0, 0, 0, i], [1, 1, 1, 1]));
      const stock = (y: tf.Tensor) => {
        const [a, b, c] = columns(y);
        const [linear, squares, pairs] = [r ** -0.25, 1 / Math.sqrt(2 * r), 1 / Math.sqrt(r)];
        const products = [[a, b], [a, c], [b, c]].map(([u, v]) => tf.mul(tf.mul(u, v), pairs)); // biome-ignore format: pairs
        return tf.concat([tf.onesLike(a), tf.mul(y, linear), tf.mul(tf.mul(y, y), squares), ...products], 3);
      };
      const value = (f: (y: tf.Tensor) => tf.Tensor) => (y: tf.Tensor) => {
        const z = tf.sum(tf.mul(f(y), weights));
        return tf.mul(tf.mul(z, z), z) as tf.Tensor; // not a polynomial of second degree any more
      };
      const derivative = (f: (y: tf.Tensor) => tf.Tensor) => tf.grad((y) => tf.sum(f(y)));
      let [got, want] = [value((y) => map.queries(y)), value(stock)];
      for (let order = 1; order <= 3; order++) {
        [got, want] = [derivative(got), derivative(want)];
        expect(difference(got(x).dataSync(), want(x).dataSync(), FLOAT32)).toBeNull();
      }
    });
  });
});

describeOnBackends('a piece of a sequence', () => {
  test.each([0, 1, 2, 3])('along axis %i is the slice, with its gradient', async (axis) => {
    await expectNoLeak(() =>
      tf.tidy(() => {
        const x = tf.tensor(randomNumbers(3 * 4 * 5 * 6, 1), [3, 4, 5, 6]);
        const begin = [0, 0, 0, 0].map((_, i) => (i === axis ? 1 : 0));
        const size = x.shape.map((n, i) => (i === axis ? 2 : n));
        const piece = (y: tf.Tensor) => sequencePiece(y, axis, [1, 2]);
        const slice = (y: tf.Tensor) => tf.slice(y, begin, size);
        expect(piece(x).dataSync()).toEqual(slice(x).dataSync());
        const slope = (f: (y: tf.Tensor) => tf.Tensor) =>
          tf
            .grad((y: tf.Tensor) => tf.sum(tf.square(f(y))))(x)
            .dataSync();
        expect(slope(piece)).toEqual(slope(slice));
      }),
    );
  });
});
