/** models.convert: softmax models as linear ones of the same weights, whole or in part. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {
  type FeatureMap,
  featureMaps,
  generation,
  LinearAttention,
  layers,
  models,
  SoftmaxAttention,
} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {predict, saveAndLoad, values} from '../helpers/layers';
import {messageOf} from '../helpers/numbers';

const IDS = [3, 1, 4, 1, 5, 2, 6, 5];
const softmaxModel = (more: Partial<models.TransformerOptions> = {}) =>
  models.transformer({
    ...{vocabSize: 8, dModel: 8, numLayers: 3, numHeads: 2, attention: 'softmax', seed: 3},
    ...more,
  });
const kinds = (model: tfl.LayersModel) =>
  model.layers
    .filter((layer) => layer instanceof LinearAttention || layer instanceof SoftmaxAttention)
    .map((layer) => layer.getClassName());

describeOnBackends('models.convert', () => {
  test('keeps names, weights and arguments, and leaves the model as it is', () => {
    const model = softmaxModel({dropout: 0.1});
    const before = model.getWeights().map((weight) => Array.from(weight.dataSync()));
    const linear = models.convert(model, {featureMap: 'elu'});
    expect(kinds(model)).toEqual(Array(3).fill('SoftmaxAttention'));
    expect(kinds(linear)).toEqual(Array(3).fill('LinearAttention'));
    expect(linear.layers.map(({name}) => name)).toEqual(model.layers.map(({name}) => name));
    expect(linear.getWeights().map((weight) => Array.from(weight.dataSync()))).toEqual(before);
    const [was, is] = [model, linear].map((m) => m.getLayer('block_1_attention') as LinearAttention);
    expect(is.options).toMatchObject({
      ...was.options,
      kernelInitializer: expect.anything(),
      biasInitializer: expect.anything(),
    });
    expect(is.options.rotary).toBe('input');
    linear.dispose();
    expect(model.getWeights().map((weight) => Array.from(weight.dataSync()))).toEqual(before);
    model.dispose();
  });

  test('gives what a linear model of those weights gives', () => {
    const model = softmaxModel();
    const linear = models.convert(model, {featureMap: 'squaredRelu'});
    const same = models.transformer({
      ...{vocabSize: 8, dModel: 8, numLayers: 3, numHeads: 2, seed: 4, featureMap: 'squaredRelu'},
    });
    same.setWeights(model.getWeights());
    const ids = tf.tensor2d([IDS], [1, 8], 'int32');
    expect(predict(linear, ids)).toEqual(predict(same, ids));
    for (const m of [model, linear, same]) m.dispose();
    ids.dispose();
  });

  test('with hedgehog adds the map s weights, and the result can be saved and loaded', async () => {
    const model = softmaxModel();
    const linear = models.convert(model);
    const layer = linear.getLayer('block_0_attention') as LinearAttention;
    expect(layer.featureMap.name).toBe('hedgehog');
    expect(layer.weights.slice(8).map(({shape}) => shape)).toEqual([
      [2, 4, 4],
      [2, 4],
    ]);
    const ids = tf.tensor2d([IDS], [1, 8], 'int32');
    const loaded = await saveAndLoad(linear);
    expect(predict(loaded, ids)).toEqual(predict(linear, ids));
    for (const m of [model, linear, loaded]) m.dispose();
    ids.dispose();
  });

  test('of some layers makes a hybrid, which streams what it predicts', () => {
    const model = softmaxModel();
    const hybrid = models.convert(model, {featureMap: 'taylor2', layers: ['block_1_attention']});
    expect(kinds(hybrid)).toEqual(['SoftmaxAttention', 'LinearAttention', 'SoftmaxAttention']);
    const ids = tf.tensor2d([IDS], [1, 8], 'int32');
    const want = predict(hybrid, ids);
    const stream = generation.stream(hybrid);
    const rows = [stream.prefill(IDS.slice(0, 3)), ...IDS.slice(3).map((id) => stream.step(id))];
    rows.forEach((logits, i) => {
      expect(
        difference(logits.dataSync(), want.subarray((i + 2) * 8, (i + 3) * 8), FLOAT32, 1e-5),
      ).toBeNull();
    });
    tf.dispose([ids, rows]);
    stream.dispose();
    hybrid.dispose();
    model.dispose();
  });

  test('takes sequential models, nested models and maps that are not registered', () => {
    const own: FeatureMap = {...featureMaps.dpfp({nu: 2}), name: 'unheardOf'};
    const args = {numHeads: 2, keyDim: 3};
    const inner = tfl.sequential({
      name: 'inner',
      layers: [layers.softmaxAttention({...args, name: 'deep', inputShape: [null, 4]})],
    });
    const input = tfl.input({shape: [null, 4]});
    const outer = layers.softmaxAttention({...args, name: 'flat'}).apply(inner.apply(input));
    const nested = tfl.model({inputs: input, outputs: outer as tfl.SymbolicTensor});
    const converted = models.convert(nested, {featureMap: own});
    const deep = (converted.getLayer('inner') as object as tfl.LayersModel).getLayer(
      'deep',
    ) as LinearAttention;
    expect(deep.featureMap).toBe(own);
    expect((converted.getLayer('flat') as LinearAttention).featureMap).toBe(own);
    const x = values([1, 5, 4], 1);
    expect(predict(converted, x)).not.toEqual(predict(nested, x));
    const alone = models.convert(inner, {featureMap: 'relu'});
    expect(alone.getClassName()).toBe('Sequential');
    expect((alone.getLayer('deep') as LinearAttention).featureMap.name).toBe('relu');
    for (const m of [converted, nested, alone]) m.dispose();
    x.dispose();
  });

  test.each<[string, () => unknown, string]>([
    [
      'no model',
      () => models.convert({} as tfl.LayersModel),
      'models.convert: expected model to be a tf.LayersModel; got an object with keys (none).',
    ],
    [
      'a model without softmax',
      () => models.convert(models.transformer({vocabSize: 4, dModel: 4, numLayers: 1, numHeads: 1})),
      'models.convert: the model has no SoftmaxAttention layer to convert.',
    ],
    [
      'an unknown option',
      () => models.convert(softmaxModel(), {map: 'elu'} as models.ConvertOptions),
      "models.convert: unknown option 'map'; expected 'featureMap', 'layers'.",
    ],
    [
      'an unknown map',
      () => models.convert(softmaxModel(), {featureMap: 'gelu'}),
      "models.convert: expected featureMap to be one of 'elu'",
    ],
    [
      'a layer that is none',
      () => models.convert(softmaxModel(), {layers: ['final_norm']}),
      "models.convert: expected layers to name SoftmaxAttention layers ('block_0_attention', 'block_1_attention', 'block_2_attention'); got 'final_norm'.",
    ],
    [
      'no layer at all',
      () => models.convert(softmaxModel(), {layers: []}),
      'models.convert: expected layers to be an array of layer names; got [].',
    ],
    [
      'a map that cannot be causal',
      () => models.convert(softmaxModel(), {featureMap: 'softmax'}),
      "models.convert: feature map 'softmax' cannot be causal, and layer 'block_0_attention' is.",
    ],
  ])('refuses %s', (_, call, message) => {
    // biome-ignore format: a table
    expect(messageOf(call)).toContain(message);
  });
});
