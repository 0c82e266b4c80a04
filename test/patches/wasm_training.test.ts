import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {all, wasmTraining} from '../../src/patches';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {randomNumbers} from '../helpers/random_numbers';

/** Runs f on the cpu backend and on wasm, and expects the same numbers. */
async function expectSameAsCpu(f: () => tf.Tensor[]): Promise<void> {
  const results: Float32Array[][] = [];
  for (const backend of ['cpu', 'wasm']) {
    await tf.setBackend(backend);
    results.push(tf.tidy(() => f().map((x) => x.dataSync() as Float32Array)));
  }
  expect(results[1].map((values, i) => difference(values, results[0][i], FLOAT32))).toEqual(
    results[1].map(() => null),
  );
}

const x4 = (shape: [number, number, number, number], seed: number): tf.Tensor4D =>
  tf.tensor4d(randomNumbers(tf.util.sizeFromShape(shape), seed), shape);

/** Both gradients of an operation at a, b, for a gradient of the output that differs everywhere. */
const gradients = (
  f: (a: tf.Tensor4D, b: tf.Tensor4D) => tf.Tensor,
  a: tf.Tensor4D,
  b: tf.Tensor4D,
): tf.Tensor[] => {
  const shape = f(a, b).shape;
  const dy = tf.tensor(randomNumbers(tf.util.sizeFromShape(shape), 7), shape);
  return tf.grads((a, b) => f(a as tf.Tensor4D, b as tf.Tensor4D))([a, b], dy);
};

const wanted = (process.env.BACKENDS ?? 'cpu,wasm').includes('wasm') ? describe : describe.skip;

wanted('patches.wasmTraining', () => {
  let undo: () => void;
  beforeAll(async () => {
    tf.env().set('IS_TEST', true);
    await tf.setBackend('wasm');
    await tf.ready();
  });
  beforeEach(() => {
    undo = wasmTraining();
  });
  afterEach(() => undo());

  test('the gradient of gather adds up rows that are read twice', async () => {
    await expectSameAsCpu(() => {
      const ids = tf.tensor2d([4, 0, 4, 1, 4, 0], [2, 3], 'int32');
      const dy = tf.tensor(randomNumbers(24, 2), [2, 3, 4]);
      return [tf.grad((table) => tf.gather(table, ids))(tf.tensor(randomNumbers(20, 1), [5, 4]), dy)];
    });
  });

  test('the gradient of gather along an inner axis', async () => {
    await expectSameAsCpu(() => {
      const ids = tf.tensor1d([2, 2, 0], 'int32');
      const dy = tf.tensor(randomNumbers(36, 2), [3, 3, 4]);
      return [tf.grad((x) => tf.gather(x, ids, 1))(tf.tensor(randomNumbers(36, 1), [3, 3, 4]), dy)];
    });
  });

  test('unsortedSegmentSum drops ids outside the range and keeps int32', async () => {
    await expectSameAsCpu(() => [
      tf.unsortedSegmentSum(
        tf.tensor2d(randomNumbers(12, 1), [4, 3]),
        tf.tensor1d([1, -1, 1, 7], 'int32'),
        3,
      ),
    ]);
    tf.tidy(() => {
      const sums = tf.unsortedSegmentSum(tf.tensor1d([1, 2, 4], 'int32'), tf.tensor1d([0, 1, 0], 'int32'), 2);
      expect([sums.dtype, Array.from(sums.dataSync())]).toEqual(['int32', [5, 2]]);
    });
  });

  test.each([
    ['same', 1],
    ['valid', 1],
    ['same', 2],
    ['valid', 2],
  ] as const)('both gradients of conv2d equal those on cpu: %s, stride %d', async (pad, stride) => {
    await expectSameAsCpu(() =>
      gradients((x, filter) => tf.conv2d(x, filter, stride, pad), x4([2, 5, 6, 3], 1), x4([3, 2, 3, 4], 2)),
    );
  });

  test.each([
    ['same', 1],
    ['valid', 1],
    ['same', 2],
  ] as const)('both gradients of depthwiseConv2d equal those on cpu: %s, stride %d', async (pad, stride) => {
    await expectSameAsCpu(() =>
      gradients(
        (x, filter) => tf.depthwiseConv2d(x, filter, stride, pad),
        x4([2, 5, 6, 3], 1),
        x4([3, 3, 3, 2], 2),
      ),
    );
  });

  test('einsum equals cpu', async () => {
    await expectSameAsCpu(() => [
      tf.einsum('bhnr,bhnd->bhrd', x4([2, 3, 4, 5], 1), x4([2, 3, 4, 2], 2)),
      tf.einsum('ij->ji', tf.tensor2d(randomNumbers(6, 1), [2, 3])),
      tf.einsum(
        'ij,jk->ik',
        tf.tensor2d([1, 2, 3, 4], [2, 2], 'int32'),
        tf.tensor2d([1, 2, 3, 4], [2, 2], 'int32'),
      ),
    ]);
  });

  test('a clone shares its values and outlives its source', async () => {
    await tf.setBackend('wasm');
    await expectNoLeak(() => {
      const buffers = tf.memory().numDataBuffers;
      const x = tf.tensor1d([1, 2, 3]);
      const copies = [tf.clone(x), tf.clone(x)];
      expect(tf.memory().numDataBuffers).toBe(buffers + 1);
      x.dispose();
      copies[0].dispose();
      const other = tf.tensor1d([9, 9, 9]); // would land in the memory of x, were it freed
      expect(Array.from(copies[1].dataSync())).toEqual([1, 2, 3]);
      copies[1].dispose();
      other.dispose();
      expect(tf.memory().numDataBuffers).toBe(buffers);
    });
  });

  test('a variable keeps its value while its clone is read and it is assigned anew', async () => {
    await tf.setBackend('wasm');
    const variable = tf.variable(tf.tidy(() => tf.tensor1d([1, 2])));
    const before = tf.clone(variable);
    tf.tidy(() => variable.assign(tf.tensor1d([3, 4])));
    expect([Array.from(before.dataSync()), Array.from(variable.dataSync())]).toEqual([
      [1, 2],
      [3, 4],
    ]);
    before.dispose();
    variable.dispose();
  });

  test('is idempotent, and undo restores the registry', () => {
    undo();
    const names = () =>
      tf.getKernelsForBackend('wasm').map(({kernelName, kernelFunc}) => [kernelName, kernelFunc]);
    const before = new Map(names() as [string, tf.KernelFunc][]);
    const first = wasmTraining();
    const after = names();
    const second = wasmTraining();
    expect(names()).toEqual(after);
    second();
    expect(new Map(names() as [string, tf.KernelFunc][])).toEqual(before);
    first();
    expect(new Map(names() as [string, tf.KernelFunc][])).toEqual(before);
  });

  test('leaves a kernel alone that tfjs has', () => {
    undo();
    const kernelFunc: tf.KernelFunc = ({inputs}) => inputs['x'] as tf.TensorInfo;
    const theirs = {kernelName: tf.UnsortedSegmentSum, backendName: 'wasm', kernelFunc};
    tf.registerKernel(theirs);
    const take = wasmTraining();
    expect(tf.getKernel(tf.UnsortedSegmentSum, 'wasm')).toBe(theirs);
    take();
    expect(tf.getKernel(tf.UnsortedSegmentSum, 'wasm')).toBe(theirs);
    tf.unregisterKernel(tf.UnsortedSegmentSum, 'wasm');
  });
});

describeOnBackends('with patches.all', () => {
  test('a model of embedding, convolution, normalisation, gelu, einsum and dropout trains', async () => {
    const undo = all();
    tf.engine().startScope();
    const layers: tfl.layers.Layer[] = [
      tfl.layers.embedding({
        inputDim: 12,
        outputDim: 8,
        inputLength: 6,
        embeddingsInitializer: tfl.initializers.randomNormal({seed: 1}),
      }),
      tfl.layers.conv1d({
        filters: 8,
        kernelSize: 3,
        padding: 'same',
        kernelInitializer: tfl.initializers.glorotNormal({seed: 2}),
      }),
      tfl.layers.layerNormalization(),
      tfl.layers.dense({
        units: 16,
        activation: 'gelu' as 'relu',
        kernelInitializer: tfl.initializers.glorotNormal({seed: 3}),
      }),
      tfl.layers.dense({
        units: 16,
        activation: 'gelu_new' as 'relu',
        kernelInitializer: tfl.initializers.glorotNormal({seed: 4}),
      }),
      tfl.layers.dropout({rate: 0.1, seed: 5}),
      tfl.layers.flatten(),
      tfl.layers.dense({
        units: 4,
        activation: 'softmax',
        kernelInitializer: tfl.initializers.glorotNormal({seed: 6}),
      }),
    ];
    const model = tfl.sequential({layers});
    model.compile({optimizer: tf.train.adam(0.02), loss: 'categoricalCrossentropy'});
    const ids = tf.tensor2d(
      randomNumbers(96, 7).map((x) => Math.floor(Math.abs(x) * 100) % 12),
      [16, 6],
      'int32',
    );
    const labels = tf.oneHot(
      tf.tensor1d(
        randomNumbers(16, 8).map((x) => Math.floor(Math.abs(x) * 100) % 4),
        'int32',
      ),
      4,
    );
    const losses: number[] = [];
    for (let step = 0; step < 12; step++) {
      losses.push((await model.trainOnBatch(ids, labels)) as number);
    }
    expect(losses[11]).toBeLessThan(0.5 * losses[0]);
    model.dispose();
    tf.engine().endScope();
    undo();
  });

  test('undo takes every patch back', () => {
    const kernels = () => ['cpu', 'wasm'].flatMap((backend) => tf.getKernelsForBackend(backend));
    const before = new Set(kernels());
    const cumsum = tf.getGradient(tf.Cumsum);
    const undo = all();
    expect(tf.getGradient(tf.Einsum)).toBeDefined();
    undo();
    expect(new Set(kernels())).toEqual(before);
    expect(tf.getGradient(tf.Cumsum)).toBe(cumsum);
    expect(tf.getGradient(tf.Einsum)).toBeUndefined();
  });
});
