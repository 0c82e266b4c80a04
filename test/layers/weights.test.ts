import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {type FeatureMap, LinearAttention, layers, SoftmaxAttention} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {values} from '../helpers/layers';

const SIZES = {numHeads: 3, keyDim: 4, valueDim: 5, outputDim: 6};
const DIMS = {query: 7, value: 8, key: 9};
const KERAS = [
  ['query_kernel', [7, 3, 4]],
  ['query_bias', [3, 4]],
  ['key_kernel', [9, 3, 4]],
  ['key_bias', [3, 4]],
  ['value_kernel', [8, 3, 5]],
  ['value_bias', [3, 5]],
  ['output_kernel', [3, 5, 6]],
  ['output_bias', [6]],
] as const;

const namesOf = (layer: tfl.layers.Layer) =>
  layer.weights.map((weight) => [weight.originalName.split('/').pop(), weight.shape]);

/** A map with a trainable weight and a constant. */
const withWeights: FeatureMap = {
  name: 'withWeights',
  dim: (r) => r,
  weights: (r, heads) => [
    {name: 'gains', shape: [heads, r], initializer: 'ones', trainable: true},
    {
      name: 'shift',
      shape: [r],
      initializer: Float32Array.from({length: r}, (_, i) => i / 4),
      trainable: false,
    },
  ],
  queries: (x, ctx) => phi(x, ctx?.weights),
  keys: (x, ctx) => phi(x, ctx?.weights),
  getConfig: () => ({}),
};
const phi = (x: tf.Tensor, weights: tf.NamedTensorMap = {}) =>
  tf.exp(tf.add(tf.mul(x, weights['gains']), weights['shift']));

describeOnBackends('weights of the attention layers', () => {
  const cross = () => [
    values([2, 5, DIMS.query], 1),
    values([2, 6, DIMS.value], 2),
    values([2, 6, DIMS.key], 3),
  ];

  test.each([
    ['linear', layers.linearAttention],
    ['softmax', layers.softmaxAttention],
  ])('%s: names, order and shapes are those of Keras MultiHeadAttention', (_, make) => {
    const layer = make(SIZES);
    const output = layer.apply(cross()) as tf.Tensor;
    expect(output.shape).toEqual([2, 5, 6]);
    expect(namesOf(layer)).toEqual(KERAS);
    expect(layer.trainableWeights.length).toBe(8);
  });

  test('without biases the kernels keep their order', () => {
    const layer = layers.linearAttention({...SIZES, useBias: false});
    layer.apply(cross());
    expect(namesOf(layer)).toEqual(KERAS.filter(([name]) => name.endsWith('kernel')));
  });

  test('valueDim defaults to keyDim and outputDim to the size of the query', () => {
    const layer = layers.linearAttention({numHeads: 2, keyDim: 4});
    expect((layer.apply(cross()) as tf.Tensor).shape).toEqual([2, 5, DIMS.query]);
    expect(layer.weights[4].shape).toEqual([DIMS.value, 2, 4]);
    expect(layer.weights[6].shape).toEqual([2, 4, DIMS.query]);
  });

  test("the feature map's weights come last, trainable before constant, and reach the map", () => {
    const layer = layers.linearAttention({...SIZES, featureMap: withWeights});
    const inputs = cross();
    const before = (layer.apply(inputs) as tf.Tensor).dataSync();
    expect(namesOf(layer).slice(8)).toEqual([
      ['gains', [3, 4]],
      ['shift', [4]],
    ]);
    expect(layer.nonTrainableWeights.map((weight) => weight.shape)).toEqual([[4]]);
    expect(Array.from(layer.weights[9].read().dataSync())).toEqual([0, 0.25, 0.5, 0.75]);
    const weights = layer.getWeights();
    weights[8] = tf.fill([3, 4], 2);
    layer.setWeights(weights);
    expect((layer.apply(inputs) as tf.Tensor).dataSync()).not.toEqual(before);
    const {grads} = tf.variableGrads(() => tf.sum(layer.apply(inputs) as tf.Tensor) as tf.Scalar);
    expect(Math.max(...tf.abs(grads[layer.weights[8].name]).dataSync())).toBeGreaterThan(0);
  });

  test('one map object serves two layers, each with weights of its own', () => {
    const [a, b] = [1, 2].map(() => layers.linearAttention({...SIZES, featureMap: withWeights}));
    const inputs = cross();
    a.apply(inputs);
    b.apply(inputs);
    expect(a.weights[8]).not.toBe(b.weights[8]);
    expect(a.weights[8].name).not.toBe(b.weights[8].name);
    b.setWeights(a.getWeights());
    const [one, two] = [a, b].map((layer) => (layer.apply(inputs) as tf.Tensor).dataSync());
    expect(two).toEqual(one);
  });

  test('kernels start in the glorot bounds of the matrices that they are', () => {
    const layer = layers.linearAttention({numHeads: 8, keyDim: 16, outputDim: 32, seed: 1});
    layer.apply(values([1, 2, 64], 1));
    const largest = (i: number) => Math.max(...tf.abs(layer.weights[i].read()).dataSync());
    const bound = (fanIn: number, fanOut: number) => Math.sqrt(6 / (fanIn + fanOut));
    expect(largest(0)).toBeLessThanOrEqual(bound(64, 8 * 16));
    expect(largest(0)).toBeGreaterThan(0.98 * bound(64, 8 * 16));
    expect(largest(6)).toBeLessThanOrEqual(bound(8 * 16, 32));
    expect(largest(6)).toBeGreaterThan(0.98 * bound(8 * 16, 32));
    expect(largest(1)).toBe(0);
  });

  test('a seed repeats the kernels, and makes query and key kernels differ', () => {
    const kernels = (args: object) => {
      const layer = layers.softmaxAttention({numHeads: 2, keyDim: 4, ...args});
      layer.apply(values([1, 2, 8], 1));
      return layer.getWeights().map((weight) => Array.from(weight.dataSync()));
    };
    for (const args of [{seed: 0}, {kernelInitializer: tfl.initializers.glorotUniform({seed: 7})}]) {
      const [one, two] = [kernels(args), kernels(args)];
      expect(one).toEqual(two);
      expect(one[0]).not.toEqual(one[2]);
    }
    expect(kernels({seed: 0})).not.toEqual(kernels({seed: 1}));
  });

  test('initializers, regularizers and constraints act on kernels as matrices', () => {
    const layer = layers.linearAttention({
      numHeads: 2,
      keyDim: 4,
      kernelInitializer: 'ones',
      biasInitializer: {className: 'Constant', config: {value: 3}},
      kernelRegularizer: tfl.regularizers.l2({l2: 0.5}),
      kernelConstraint: 'maxNorm',
      biasConstraint: 'nonNeg',
    });
    layer.apply(values([1, 2, 8], 1));
    expect(Array.from(layer.weights[1].read().dataSync())).toEqual(new Array(8).fill(3));
    const losses = layer.calculateLosses().map((loss) => loss.dataSync()[0]);
    expect(losses).toEqual([32, 32, 32, 32]); // l2/2 of 64 ones
    layer.weights[0].write(tf.fill([8, 2, 4], 10)); // columns of norm 10 sqrt 8, bounded to 2
    expect(layer.weights[0].read().dataSync()[0]).toBeCloseTo(2 / Math.sqrt(8), 5);
    layer.weights[6].write(tf.fill([2, 4, 8], 10));
    expect(layer.weights[6].read().dataSync()[0]).toBeCloseTo(2 / Math.sqrt(8), 5);
  });

  test('the classes stand at the root of the package', () => {
    expect(layers.linearAttention(SIZES)).toBeInstanceOf(LinearAttention);
    expect(new SoftmaxAttention(SIZES).getClassName()).toBe('SoftmaxAttention');
    expect(layers.LinearAttention).toBe(LinearAttention);
  });
});
