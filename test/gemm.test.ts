/** patches.wasmMatMul: products against double precision, broadcasting, undo, memory. */
import * as tf from '@tensorflow/tfjs-core';
import {patches} from '../index';
import {wasmMemory} from '../src/tfjs';
import {disableSimd, hasRelaxedSimd} from '../src/wasm/instance';
import {RELAXED_SIMD_FLAG} from '../src/wasm/relaxed';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {broadcastProduct, product, uniform} from './helpers/mat_mul';

describeOnBackends('wasmMatMul', (backend) => {
  if (backend !== 'wasm') {
    test('leaves other backends alone', () => {
      const before = [tf.BatchMatMul, tf._FusedMatMul, tf.Sum].map((name) => tf.getKernel(name, backend));
      const undo = patches.wasmMatMul();
      const after = [tf.BatchMatMul, tf._FusedMatMul, tf.Sum].map((name) => tf.getKernel(name, backend));
      undo();
      expect(after).toEqual(before);
    });
    return;
  }

  let undo: () => void;
  beforeEach(() => {
    undo = patches.wasmMatMul();
  });
  afterEach(() => undo());

  describe('a product', () => {
    const SIZES = [
      [1, 1, 1],
      [1, 5, 7],
      [1, 48, 12],
      [1, 9, 70],
      [2, 70, 5],
      [3, 33, 9],
      [5, 1, 7],
      [4, 8, 4],
      [7, 9, 11],
      [12, 40, 9],
      [16, 24, 513],
      [17, 520, 5],
      [130, 70, 300],
      [129, 513, 257],
      [4, 20, 530],
      [9, 1041, 6],
    ];
    describe.each(SIZES)('of %d x %d, inner size %d,', (M, N, K) => {
      test.each([
        ['NN', false, false],
        ['NT', false, true],
        ['TN', true, false],
        ['TT', true, true],
      ])('%s, is that of double precision', (_, transposeA, transposeB) => {
        const a = uniform(M * K, 1);
        const b = uniform(K * N, 2);
        const got = tf.tidy(() =>
          tf
            .matMul(
              tf.tensor2d(a, transposeA ? [K, M] : [M, K]),
              tf.tensor2d(b, transposeB ? [N, K] : [K, N]),
              transposeA,
              transposeB,
            )
            .dataSync(),
        );
        expect(difference(got, product(a, b, M, N, K, transposeA, transposeB), FLOAT32)).toBeNull();
      });
    });

    test('with relaxed SIMD, where it is asked for and there, is the same to rounding', () => {
      const [M, N, K] = [21, 26, 530];
      const a = uniform(M * K, 5);
      const b = uniform(K * N, 6);
      const values = () =>
        tf.tidy(() => tf.matMul(tf.tensor2d(a, [M, K]), tf.tensor2d(b, [K, N])).dataSync());
      const plain = values();
      tf.env().set(RELAXED_SIMD_FLAG, true);
      try {
        const relaxed = values();
        expect(difference(relaxed, product(a, b, M, N, K, false, false), FLOAT32)).toBeNull();
        expect(relaxed.some((x, i) => x !== plain[i])).toBe(hasRelaxedSimd());
      } finally {
        tf.env().set(RELAXED_SIMD_FLAG, false);
      }
    });

    test.each([
      [[6], [6]],
      [[6], []],
      [[], [6]],
      [[6], [1]],
      [[1], [6]],
      [
        [2, 3],
        [2, 3],
      ],
      [
        [2, 1],
        [1, 3],
      ],
      [[2, 3], [3]],
      [
        [2, 1, 3],
        [4, 1],
      ],
    ])('broadcasts batches %j and %j', (batchA, batchB) => {
      for (const [transposeA, transposeB] of [
        [false, false],
        [false, true],
        [true, false],
      ]) {
        const [M, N, K] = [5, 9, 6];
        const shapeA = [...batchA, ...(transposeA ? [K, M] : [M, K])];
        const shapeB = [...batchB, ...(transposeB ? [N, K] : [K, N])];
        const a = uniform(tf.util.sizeFromShape(shapeA), 3);
        const b = uniform(tf.util.sizeFromShape(shapeB), 4);
        const out = tf.tidy(() =>
          tf.keep(tf.matMul(tf.tensor(a, shapeA), tf.tensor(b, shapeB), transposeA, transposeB)),
        );
        const {shape, want} = broadcastProduct(a, batchA, b, batchB, [M, N, K], transposeA, transposeB);
        expect(out.shape).toEqual([...shape, M, N]);
        expect(difference(out.dataSync(), want, FLOAT32)).toBeNull();
        out.dispose();
      }
    });

    test.each([
      ['no rows', [0, 3], [3, 4]],
      ['no columns', [2, 3], [3, 0]],
      ['no batches', [0, 2, 3], [0, 3, 4]],
    ])('of %s is empty', (_, shapeA, shapeB) => {
      const out = tf.tidy(() => tf.keep(tf.matMul(tf.zeros(shapeA), tf.zeros(shapeB))));
      expect(out.size).toBe(0);
      out.dispose();
    });

    test('with inner size 0 is zero, whatever the memory held', () => {
      tf.fill([4, 8], Number.NaN).dispose();
      expect([...tf.tidy(() => tf.matMul(tf.zeros([4, 0]), tf.zeros([0, 8])).dataSync())]).toEqual(
        Array(32).fill(0),
      );
    });

    test.each([
      [1, 12],
      [5, 9],
      [40, 40],
    ])('of %d x %d takes NaN to its row or column and nowhere else', (M, N) => {
      const K = 11;
      const [row, column] = [M - 1, N - 2];
      const got = tf.tidy(() => {
        const a = uniform(M * K, 5);
        const b = uniform(K * N, 6);
        a[row * K + 3] = Number.NaN;
        b[4 * N + column] = Number.NaN;
        return tf.matMul(tf.tensor2d(a, [M, K]), tf.tensor2d(b, [K, N])).dataSync();
      });
      got.forEach((value, i) => {
        expect(Number.isNaN(value)).toBe(Math.floor(i / N) === row || i % N === column);
      });
    });

    test('has the gradients of stock ops', () => {
      const a = tf.tensor3d(uniform(2 * 5 * 7, 7), [2, 5, 7]);
      const b = tf.tensor3d(uniform(2 * 7 * 6, 8), [2, 7, 6]);
      const gradients = () =>
        tf
          .grads((x, y) => tf.sum(tf.square(tf.matMul(x, y))))([a, b])
          .map((g) => {
            const values = g.dataSync();
            g.dispose();
            return values;
          });
      const ours = gradients();
      undo();
      const stock = gradients();
      const differences = ours.map((g, i) => difference(g, stock[i], FLOAT32));
      expect(differences).toEqual([null, null]);
      tf.dispose([a, b]);
    });

    test('takes the stock kernel where SIMD is missing', () => {
      try {
        disableSimd(true);
        expect([...tf.tidy(() => tf.matMul([[1, 2]], [[3], [4]]).dataSync())]).toEqual([11]);
      } finally {
        disableSimd(false);
      }
    });
  });

  test('is idempotent, and one undo restores the stock kernels', () => {
    undo();
    const names = [tf.BatchMatMul, tf._FusedMatMul, tf.Sum];
    const stock = names.map((name) => tf.getKernel(name, 'wasm').kernelFunc);
    const first = patches.wasmMatMul();
    const patched = names.map((name) => tf.getKernel(name, 'wasm').kernelFunc);
    const second = patches.wasmMatMul();
    expect(names.map((name) => tf.getKernel(name, 'wasm').kernelFunc)).toEqual(patched);
    expect(patched.filter((kernel, i) => kernel === stock[i])).toEqual([]);
    first();
    second();
    expect(names.map((name) => tf.getKernel(name, 'wasm').kernelFunc)).toEqual(stock);
  });

  test('leaves neither tensors nor memory behind over many calls', async () => {
    const a = tf.tensor3d(uniform(2 * 40 * 30, 17), [2, 40, 30]);
    const b = tf.tensor3d(uniform(2 * 30 * 50, 18), [2, 30, 50]);
    const bias = tf.tensor1d(uniform(50, 19));
    const heap = () => wasmMemory(tf.backend())?.buffer.byteLength;
    const once = () => {
      tf.matMul(a, b).dispose();
      tf.fused.matMul({a, b, bias, activation: 'relu'}).dispose();
      tf.sum(a, 0).dispose();
    };
    once();
    const before = heap();
    await expectNoLeak(() => {
      for (let i = 0; i < 3000; i++) {
        once();
      }
    });
    expect(heap()).toBe(before);
    tf.dispose([a, b, bias]);
  });
});
