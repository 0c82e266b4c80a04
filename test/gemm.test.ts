/** patches.wasmMatMul: products against double precision, fused bias and activations, broadcasting, undo, memory. */
import * as tf from '@tensorflow/tfjs-core';
import {patches} from '../index';
import {random} from '../src/random';
import {wasmMemory} from '../src/tfjs';
import {disableSimd} from '../src/wasm/instance';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';

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

    test('over other axes, of integers and of nothing is what it was', () => {
      const sums = () =>
        tf.tidy(() =>
          [
            tf.sum(tf.tensor2d([1, 2, 3, 4], [2, 2]), 1),
            tf.sum(tf.tensor2d([1, 2, 3, 4], [2, 2])),
            tf.sum(tf.tensor2d([1, 2, 3, 4], [2, 2], 'int32'), 0),
            tf.sum(tf.zeros([0, 3]), 0),
          ].map((t) => [t.dtype, t.shape, ...t.dataSync()]),
        );
      const ours = sums();
      undo();
      expect(ours).toEqual(sums());
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

/** Numbers in [-1, 1), the same for the same seed. */
function uniform(size: number, seed: number): Float32Array {
  const stream = random(seed);
  return Float32Array.from({length: size}, () => 2 * stream.uniform() - 1);
}

function product(
  a: Float32Array,
  b: Float32Array,
  M: number,
  N: number,
  K: number,
  transposeA: boolean,
  transposeB: boolean,
): Float64Array {
  const c = new Float64Array(M * N);
  for (let m = 0; m < M; m++) {
    for (let n = 0; n < N; n++) {
      for (let k = 0; k < K; k++) {
        c[m * N + n] += a[transposeA ? k * M + m : m * K + k] * b[transposeB ? n * K + k : k * N + n];
      }
    }
  }
  return c;
}

function broadcastProduct(
  a: Float32Array,
  batchA: number[],
  b: Float32Array,
  batchB: number[],
  [M, N, K]: number[],
  transposeA: boolean,
  transposeB: boolean,
): {shape: number[]; want: number[]} {
  const shape = tf.broadcast_util.assertAndGetBroadcastShape(batchA, batchB);
  const want: number[] = [];
  const indexOf = (batch: number[], at: number[]) =>
    batch.reduce(
      (index, size, i) => index * size + (size === 1 ? 0 : at[shape.length - batch.length + i]),
      0,
    );
  for (let i = 0; i < tf.util.sizeFromShape(shape); i++) {
    const at = tf.util.indexToLoc(i, shape.length, tf.util.computeStrides(shape));
    const from = M * K * indexOf(batchA, at);
    const other = K * N * indexOf(batchB, at);
    const [left, right] = [a.subarray(from, from + M * K), b.subarray(other, other + K * N)];
    want.push(...product(left, right, M, N, K, transposeA, transposeB));
  }
  return {shape, want};
}
