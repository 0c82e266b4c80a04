/** patches.wasmMatMul: fused bias and activations, and sums over leading axes. */
import * as tf from '@tensorflow/tfjs-core';
import {patches} from '../index';
import {BACKENDS} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {broadcastProduct, product, uniform} from './helpers/mat_mul';

const onWasm = BACKENDS.includes('wasm') ? describe : describe.skip;

onWasm('wasmMatMul, what follows a product', () => {
  let undo: () => void;
  beforeAll(async () => {
    tf.env().set('IS_TEST', true);
    await tf.setBackend('wasm');
  });
  beforeEach(() => {
    undo = patches.wasmMatMul();
  });
  afterEach(() => undo());

  describe('a fused product', () => {
    const ACTIVATIONS = ['linear', 'relu', 'relu6', 'elu', 'sigmoid', 'prelu', 'leakyrelu'] as const;
    const reference: {[name: string]: (x: number, slope: number) => number} = {
      linear: (x) => x,
      relu: (x) => Math.max(x, 0),
      relu6: (x) => Math.min(Math.max(x, 0), 6),
      elu: (x) => (x < 0 ? Math.expm1(x) : x),
      sigmoid: (x) => 1 / (1 + Math.exp(-x)),
      prelu: (x, slope) => (x < 0 ? slope * x : x),
      leakyrelu: (x) => (x < 0 ? 0.3 * x : x),
    };

    test.each(ACTIVATIONS)(
      'with %s is right for batches, odd sizes and inner sizes above 48',
      (activation) => {
        const [B, M, N, K] = [3, 7, 13, 90];
        const a = uniform(B * M * K, 9).map((x) => 3 * x);
        const b = uniform(B * K * N, 10);
        for (const biasSize of [N, 1]) {
          const bias = uniform(biasSize, 11);
          const slopes = uniform(biasSize, 12);
          const got = tf.tidy(() =>
            tf.fused
              .matMul({
                a: tf.tensor3d(a, [B, M, K]),
                b: tf.tensor3d(b, [B, K, N]),
                bias: tf.tensor1d(bias),
                activation,
                leakyreluAlpha: 0.3,
                ...(activation === 'prelu' ? {preluActivationWeights: tf.tensor1d(slopes)} : {}),
              })
              .dataSync(),
          );
          const {want} = broadcastProduct(a, [B], b, [B], [M, N, K], false, false);
          const finished = want.map((x, i) =>
            reference[activation](x + bias[(i % N) % biasSize], slopes[(i % N) % biasSize]),
          );
          expect(difference(got, finished, FLOAT32)).toBeNull();
        }
      },
    );

    test('without a bias applies the activation alone', () => {
      const got = tf.tidy(() =>
        tf.fused.matMul({a: [[1, -2]], b: [[1], [1]], activation: 'relu'}).dataSync(),
      );
      expect([...got]).toEqual([0]);
    });

    test.each(['relu', 'linear', 'sigmoid', 'elu', 'leakyrelu', 'relu6'] as const)(
      'with a bias per element and %s is right, which the stock kernel refuses',
      (activation) => {
        const [M, N, K] = [3, 5, 4];
        const [a, b, bias] = [uniform(M * K, 13), uniform(K * N, 14), uniform(M * N, 15)];
        const got = tf.tidy(() =>
          tf.fused
            .matMul({
              a: tf.tensor2d(a, [M, K]),
              b: tf.tensor2d(b, [K, N]),
              bias: tf.tensor2d(bias, [M, N]),
              activation,
              leakyreluAlpha: 0.3,
            })
            .dataSync(),
        );
        const want = Array.from(product(a, b, M, N, K, false, false)).map((x, i) =>
          reference[activation](x + bias[i], 0),
        );
        expect(difference(got, want, FLOAT32)).toBeNull();
      },
    );

    test.each(ACTIVATIONS.filter((name) => name !== 'prelu'))('with %s keeps NaN', (activation) => {
      const got = tf.tidy(() =>
        tf.fused
          .matMul({a: [[1], [Number.NaN]], b: [[1, 1, 1, 1, 1]], bias: tf.zeros([5]), activation})
          .dataSync(),
      );
      expect([...got].map(Number.isNaN)).toEqual([...Array(5).fill(false), ...Array(5).fill(true)]);
    });
  });

  describe('a sum', () => {
    test.each([
      [[300, 21], 0],
      [
        [6, 50, 17],
        [0, 1],
      ],
      [
        [6, 50, 17],
        [1, 0],
      ],
      [[3, 4, 5, 2], [0]],
      [[2, 3], -2],
    ])('of %j over axes %j is that of double precision', (shape, axis) => {
      const x = uniform(tf.util.sizeFromShape(shape as number[]), 16);
      const count = Array.isArray(axis) ? axis.length : 1;
      const rest = (shape as number[]).slice(count);
      const columns = tf.util.sizeFromShape(rest);
      const want = new Float64Array(columns);
      x.forEach((value, i) => {
        want[i % columns] += value;
      });
      for (const keepDims of [false, true]) {
        const out = tf.tidy(() => tf.keep(tf.sum(tf.tensor(x, shape as number[]), axis as number, keepDims)));
        expect(out.shape).toEqual([...(keepDims ? Array(count).fill(1) : []), ...rest]);
        expect(difference(out.dataSync(), Array.from(want), FLOAT32)).toBeNull();
        out.dispose();
      }
    });

    test('of no rows is zero, whatever the memory held', () => {
      tf.fill([64], Number.NaN).dispose();
      expect([...tf.tidy(() => tf.sum(tf.zeros([0, 64]), 0).dataSync())]).toEqual(Array(64).fill(0));
    });

    test('over other axes and of integers is what it was', () => {
      const sums = () =>
        tf.tidy(() =>
          [
            tf.sum(tf.tensor2d([1, 2, 3, 4], [2, 2]), 1),
            tf.sum(tf.tensor2d([1, 2, 3, 4], [2, 2])),
            tf.sum(tf.tensor2d([1, 2, 3, 4], [2, 2], 'int32'), 0),
            tf.sum(tf.zeros([3, 0]), 0),
          ].map((t) => [t.dtype, t.shape, ...t.dataSync()]),
        );
      const ours = sums();
      undo();
      expect(ours).toEqual(sums());
    });
  });
});
