import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {generation, models, warmup} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';

const small = () => models.transformer({vocabSize: 7, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});

describeOnBackends('warmup', () => {
  test('runs what a model will do once, and reports it', async () => {
    const model = small();
    const seen: generation.WarmupProgress[] = [];
    await expectNoLeak(async () => {
      const {programs, seconds} = await warmup(model, {
        uses: ['predict', 'stream', 'train'],
        batchSize: 2,
        length: 5,
        onProgress: (progress) => seen.push(progress),
      });
      expect(programs).toBe(0);
      expect(seconds).toBeGreaterThanOrEqual(0);
    });
    expect(seen).toEqual([1, 2, 3].map((done) => ({phase: 'run', done, total: 3})));
    model.dispose();
  });

  test('leaves the weights as they were, and what they compute', async () => {
    const model = small();
    const before = model.getWeights().map((weight) => Array.from(weight.dataSync()));
    await generation.warmup(model, {uses: ['train', 'predict']});
    expect(model.getWeights().map((weight) => Array.from(weight.dataSync()))).toEqual(before);
    model.dispose();
  });

  test('a model that cannot be read token by token is only called, unless reading was asked for', async () => {
    const model = tfl.sequential({
      layers: [tfl.layers.flatten({inputShape: [3, 2]}), tfl.layers.dense({units: 1})],
    });
    const uses: string[] = [];
    await warmup(model, {onProgress: ({done, total}) => uses.push(`${done}/${total}`)});
    expect(uses).toEqual(['1/1']);
    await expect(warmup(model, {uses: ['stream']})).rejects.toThrow(/flatten/i);
    model.dispose();
  });

  test.each<[string, Parameters<typeof warmup>[0], number]>([
    ['one causal shape', {keyDim: 4, causal: true}, 2],
    ['one non-causal shape, which has no steps', {keyDim: 4, valueDim: 3, keyLength: 2}, 1],
    [
      'several shapes',
      [
        {keyDim: 4, numHeads: 2, causal: true, dataFormat: 'BNHD', featureMap: 'relu'},
        {keyDim: 3, batchSize: 2, causal: true, normalize: false},
      ],
      4,
    ],
  ])('runs the op at %s', async (_, shapes, runs) => {
    const totals = new Set<number>();
    await expectNoLeak(async () => {
      await warmup(shapes, {onProgress: ({total}) => totals.add(total)});
    });
    expect([...totals]).toEqual([runs]);
  });

  test('shapes can be warmed up for training', async () => {
    await expectNoLeak(async () => {
      await warmup({keyDim: 4, causal: true}, {uses: ['train']});
    });
  });

  // biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
  test.each<[string, any, any, RegExp]>([
    ['no model', null, {}, /^warmup: expected a LayersModel, or shapes \{keyDim, \.\.\.\}; got null/],
    ['no size', {numHeads: 2}, {}, /^warmup: expected a LayersModel, or shapes \{keyDim, \.\.\.\}/],
    ['an unknown size', {keyDim: 2, heads: 2}, {}, /^warmup: unknown option 'heads'/],
    ['a bad size', {keyDim: 2.5}, {}, /^warmup: expected shapes\.keyDim to be a whole number/],
    ['an unknown option', {keyDim: 2}, {onprogress: 1}, /^warmup: unknown option 'onprogress'/],
    ['an unknown use', {keyDim: 2}, {uses: ['evaluate']}, /^warmup: expected uses to be an array of/],
    ['a bad callback', {keyDim: 2}, {onProgress: 1}, /^warmup: expected onProgress to be a function/],
    ['a bad length', {keyDim: 2}, {length: 0}, /^warmup: expected length to be a whole number/],
  ])('%s is an error before anything runs', async (_, target, options, message) => {
    const before = tf.memory().numTensors;
    await expect(warmup(target, options)).rejects.toThrow(message);
    expect(tf.memory().numTensors).toBe(before);
  });
});
