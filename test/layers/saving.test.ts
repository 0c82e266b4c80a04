/** Layers come back from model.save and tf.loadLayersModel as they were, in functional and sequential models. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {type FeatureMap, layers, registerFeatureMap} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {predict, saveAndLoad, values} from '../helpers/layers';

interface PowerConfig {
  exponent?: number;
  signs?: ArrayLike<number>;
}
/** |signs x|^exponent + offset, to see a config and a constant weight come back. */
const power = ({exponent = 1, signs = Float32Array.of(1, 1, 1, 1)}: PowerConfig = {}): FeatureMap => {
  const phi: FeatureMap['queries'] = (x, ctx) =>
    tf.add(tf.pow(tf.abs(tf.mul(x, Array.from(signs))), exponent), ctx?.weights?.['offset'] ?? 0);
  return {
    name: 'power',
    dim: (r) => r,
    weights: (r) => [
      {
        name: 'offset',
        shape: [r],
        initializer: Float32Array.from({length: r}, (_, i) => i),
        trainable: false,
      },
    ],
    queries: phi,
    keys: phi,
    getConfig: () => ({exponent, signs: Float32Array.from(signs)}),
  };
};
registerFeatureMap('power', power);

/** Every argument of both layers, none at its default. */
const SHARED = {
  numHeads: 3,
  keyDim: 4,
  valueDim: 5,
  outputDim: 7,
  causal: true,
  useBias: true,
  dropout: 0.25,
  rotary: 'input',
  rotaryPairing: 'interleaved',
  rotaryBase: 500,
  kernelInitializer: tfl.initializers.varianceScaling({
    scale: 2,
    mode: 'fanOut',
    distribution: 'normal',
    seed: 3,
  }),
  biasInitializer: tfl.initializers.constant({value: 0.5}),
  kernelRegularizer: tfl.regularizers.l1l2({l1: 0.1, l2: 0.2}),
  biasRegularizer: 'l1l2',
  // Loading applies constraints to the loaded values; tfjs's norms would change their last bit each time.
  kernelConstraint: 'nonNeg',
  biasConstraint: 'nonNeg',
  seed: 11,
  trainable: false,
} as const;
const LINEAR = {
  ...SHARED,
  rotary: 'numerator',
  featureMap: power({exponent: 2, signs: [1, -1, 0.5, 2]}),
  normalize: false,
  epsilon: 0.125,
} as const;

const config = (model: tfl.LayersModel) =>
  JSON.parse(JSON.stringify(model.layers.map((layer) => layer.getConfig())));

describeOnBackends('saving and loading', () => {
  test.each([
    ['linear', () => layers.linearAttention(LINEAR)],
    ['softmax', () => layers.softmaxAttention(SHARED)],
  ])('%s: every argument survives, and outputs are bitwise equal', async (kind, make) => {
    const layer = make();
    const input = tfl.input({shape: [null, 6]});
    const model = tfl.model({inputs: input, outputs: layer.apply(input) as tfl.SymbolicTensor});
    layer.setWeights(layer.getWeights().map((w, i) => values(w.shape, i)));
    const loaded = await saveAndLoad(model);
    expect(config(loaded)).toEqual(config(model));
    const l1l2 = {className: 'L1L2', config: {l1: expect.closeTo(0.1), l2: expect.closeTo(0.2)}};
    expect(layer.getConfig()).toMatchObject({
      numHeads: 3,
      keyDim: 4,
      valueDim: 5,
      outputDim: 7,
      causal: true,
      useBias: true,
      dropout: 0.25,
      rotary: kind === 'linear' ? 'numerator' : 'input',
      rotaryPairing: 'interleaved',
      rotaryBase: 500,
      kernelInitializer: {
        className: 'VarianceScaling',
        config: {scale: 2, mode: 'fanOut', distribution: 'normal', seed: 3},
      },
      biasInitializer: {className: 'Constant', config: {value: 0.5}},
      kernelRegularizer: l1l2,
      biasRegularizer: {className: 'L1L2'},
      kernelConstraint: {className: 'NonNeg', config: {}},
      biasConstraint: {className: 'NonNeg', config: {}},
      seed: 11,
      trainable: false,
      ...(kind === 'linear' && {normalize: false, epsilon: 0.125}),
    });
    for (const shape of [
      [2, 5, 6],
      [1, 9, 6],
    ]) {
      const x = values(shape, 1);
      expect(predict(loaded, x)).toEqual(predict(model, x));
    }
    expect(loaded.trainableWeights.length).toBe(0);
  });

  test('a registered map comes back with its config and its constant weight', async () => {
    const model = tfl.sequential({layers: [layers.linearAttention({...LINEAR, inputShape: [null, 6]})]});
    model.layers[0].setWeights(model.layers[0].getWeights().map((w, i) => values(w.shape, i)));
    const loaded = await saveAndLoad(model);
    const layer = loaded.layers[0];
    expect(layer.getConfig()['featureMap']).toEqual({
      name: 'power',
      config: {exponent: 2, signs: [1, -1, 0.5, 2]},
    });
    expect(layer.weights.at(-1)?.read().dataSync()).toEqual(values([4], 8).dataSync());
    expect(predict(loaded, values([2, 5, 6], 1))).toEqual(predict(model, values([2, 5, 6], 1)));
  });

  test('defaults stay defaults: outputDim and epsilon are not frozen into the file', () => {
    const layer = layers.linearAttention({numHeads: 1, keyDim: 2});
    expect(layer.getConfig()).toMatchObject({
      outputDim: null,
      epsilon: null,
      valueDim: 2,
      rotary: false,
      featureMap: {name: 'elu', config: {}},
    });
  });

  test('fromConfig ignores keys that loaders add', () => {
    const saved = layers.linearAttention({numHeads: 2, keyDim: 4}).getConfig();
    const cls = layers.LinearAttention;
    const {fromConfig} = cls;
    const copy = fromConfig(cls, {...saved, customObjects: {}, somethingElse: 1});
    expect(copy.getConfig()).toEqual(saved);
  });

  test('a cross-attention model with a shared layer and a mask input comes back', async () => {
    const [query, memory, mask] = [
      tfl.input({shape: [null, 6]}),
      tfl.input({shape: [null, 5]}),
      tfl.input({shape: [null], dtype: 'int32'}),
    ];
    const cross = layers.linearAttention({numHeads: 2, keyDim: 4});
    const first = cross.apply([query, memory, memory, mask]) as tfl.SymbolicTensor;
    const second = cross.apply([first, memory, memory, mask]) as tfl.SymbolicTensor;
    const model = tfl.model({inputs: [query, memory, mask], outputs: second});
    const loaded = await saveAndLoad(model);
    const inputs = [
      values([2, 3, 6], 1),
      values([2, 4, 5], 2),
      tf.tensor2d([1, 1, 0, 1, 0, 1, 1, 1], [2, 4], 'int32'),
    ];
    expect(predict(loaded, inputs)).toEqual(predict(model, inputs));
  });

  test('a map that is not registered is named when loading', async () => {
    const featureMap: FeatureMap = {...power(), name: 'nobodysMap', weights: undefined};
    const model = tfl.sequential({
      layers: [layers.linearAttention({numHeads: 1, keyDim: 4, featureMap, inputShape: [null, 6]})],
    });
    await expect(saveAndLoad(model)).rejects.toThrow(
      "LinearAttention: feature map 'nobodysMap' is not registered; call registerFeatureMap('nobodysMap', factory) before loading.",
    );
  });

  test.each([
    ['linear', layers.linearAttention],
    ['softmax', layers.softmaxAttention],
  ])('%s: any batch and length at call time', (_, make) => {
    const model = tfl.sequential({
      layers: [make({numHeads: 2, keyDim: 4, outputDim: 3, causal: true, inputShape: [null, 6]})],
    });
    expect(model.outputShape).toEqual([null, null, 3]);
    for (const [batch, length] of [
      [1, 1],
      [3, 8],
      [2, 5],
      [2, 0],
    ]) {
      const output = (model.layers[0] as ReturnType<typeof make>).apply(
        values([batch, length, 6], 1),
      ) as tf.Tensor;
      expect(output.shape).toEqual([batch, length, 3]);
    }
    expect(predict(model, values([2, 7, 6], 1)).length).toBe(42);
    expect(predict(model, values([3, 4, 6], 1)).length).toBe(36);
  });
});
