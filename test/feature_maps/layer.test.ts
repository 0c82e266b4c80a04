/** Feature maps in layers and models: weights, training, saving, streams, redrawn features. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {
  type FeatureMap,
  featureMaps,
  generation,
  LinearAttention,
  layers,
  linearAttention,
  models,
  patches,
  registerFeatureMap,
  training,
} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {predict, saveAndLoad, values} from '../helpers/layers';

const IDS = [3, 1, 4, 1, 5, 2, 6, 5];

const language = (featureMap: string | FeatureMap, more: Partial<models.TransformerOptions> = {}) =>
  models.transformer({vocabSize: 8, dModel: 8, numLayers: 2, numHeads: 2, featureMap, seed: 3, ...more});

/** Logits after each token of a stream, bit for bit. */
function streamed(model: tfl.LayersModel): number[][] {
  const stream = generation.stream(model);
  const rows = [stream.prefill(IDS.slice(0, 3)), ...IDS.slice(3).map((id) => stream.step(id))].map(
    (logits) => {
      const row = Array.from(logits.dataSync());
      logits.dispose();
      return row;
    },
  );
  stream.dispose();
  return rows;
}

registerFeatureMap('scaledRelu', (): FeatureMap => {
  const map = (x: tf.Tensor, ctx?: {weights?: tf.NamedTensorMap}) =>
    tf.relu(tf.mul(x, ctx?.weights?.gain as tf.Tensor));
  return {
    name: 'scaledRelu',
    dim: (r) => r,
    weights: (r) => [{name: 'gain', shape: [r], initializer: 'ones', trainable: true}],
    queries: map,
    keys: map,
    getConfig: () => ({}),
  };
});

const CAUSAL: [string, string | FeatureMap][] = [
  ['exp', 'exp'],
  ['taylor2', 'taylor2'],
  ['rebased', featureMaps.rebased({epsilon: 1e-4})],
  ['dpfp', featureMaps.dpfp({nu: 2})],
  ['hedgehog', featureMaps.hedgehog({form: 'softmax', useBias: false})],
  ['hedgehog by name', 'hedgehog'],
  ['cosFormer', featureMaps.cosFormer({maxLength: 16})],
  ['favor by name', 'favor'],
  [
    'favor with all options',
    featureMaps.favor({numFeatures: 6, kind: 'hyperbolic', seed: 4, orthogonal: false}),
  ],
  ['favor with given directions', featureMaps.favor({projection: [[1, 0, 0, 2], [0, 1, 3, 0]], kind: 'relu'})], // biome-ignore format: a matrix
  ['a map of your own', 'scaledRelu'],
];

describeOnBackends('a model with the feature map', () => {
  let undo: () => void;
  beforeAll(() => {
    undo = patches.wasmTraining();
  });
  afterAll(() => undo());

  test.each(CAUSAL)(
    '%s: saved and loaded, predicts and streams the same bits, twice',
    async (_, featureMap) => {
      const model = language(featureMap);
      const ids = tf.tensor2d([IDS], [1, IDS.length], 'int32');
      const logits = predict(model, ids);
      expect(predict(model, ids)).toEqual(logits);
      const steps = streamed(model);
      const loaded = await saveAndLoad(model);
      expect(predict(loaded, ids)).toEqual(logits);
      expect(streamed(loaded)).toEqual(steps);
      steps.forEach((row, i) => {
        const at = (i + 2) * 8;
        expect(difference(row, logits.subarray(at, at + 8), FLOAT32, 1e-5)).toBeNull();
      });
      tf.dispose(ids);
      model.dispose();
      loaded.dispose();
    },
  );

  test.each(CAUSAL)(
    '%s: trains, and its trainable weights change with the others',
    async (name, featureMap) => {
      const model = language(featureMap);
      training.compile(model, {optimizer: tf.train.sgd(0.1)});
      const own = (trainable: boolean) =>
        model.layers
          .filter((layer) => layer instanceof LinearAttention)
          .flatMap(({weights}) => weights.slice(8).filter((weight) => weight.trainable === trainable))
          .map((weight) => Array.from(weight.read().dataSync()));
      const [before, fixed] = [own(true), own(false)];
      const x = tf.tensor2d([IDS], [1, 8], 'int32');
      const y = tf.tensor2d([[...IDS.slice(1), 0]], [1, 8], 'int32');
      const losses = [];
      for (let i = 0; i < 4; i++) losses.push((await model.trainOnBatch(x, y)) as number);
      expect(losses[3]).toBeLessThan(losses[0]);
      own(true).forEach((weight, i) => {
        expect(weight).not.toEqual(before[i]);
      });
      expect(own(false)).toEqual(fixed);
      const counts: {[name: string]: [number, number]} = {
        rebased: [4, 0],
        hedgehog: [2, 0],
        'a map of your own': [2, 0],
      };
      const [trainable, constant] = counts[name] ?? [before.length, fixed.length];
      expect([before.length, fixed.length]).toEqual([trainable, constant]);
      tf.dispose([x, y]);
      model.dispose();
    },
  );

  test('cosFormer, rows of a padded prompt stand where they do without padding', () => {
    tf.tidy(() => {
      const model = language(featureMaps.cosFormer({maxLength: 10}), {position: 'none'});
      const alone = generation.stream(model);
      const want = [alone.prefill([5, 6, 2]), alone.step(7)].map((logits) => logits.dataSync());
      const both = generation.stream(model, {batchSize: 2});
      const prompt = [[1, 2, 3, 4, 5], [0, 0, 5, 6, 2]]; // biome-ignore format: rows
      const mask = [[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]; // biome-ignore format: rows
      const ids = tf.tensor2d(prompt, [2, 5], 'int32');
      const got = [both.prefill(ids, {mask: tf.tensor2d(mask, [2, 5], 'int32')}), both.step([1, 7])];
      got.forEach((logits, i) => {
        const row = tf.slice(logits, [1, 0], [1, -1]).dataSync();
        expect(difference(row, want[i], FLOAT32, 1e-6)).toBeNull();
      });
      alone.dispose();
      both.dispose();
    });
  });

  test('cosFormer refuses to go past its length, and the stream stays where it was', () => {
    const model = language(featureMaps.cosFormer({maxLength: 4}));
    const stream = generation.stream(model);
    stream.prefill([1, 2, 3, 4]).dispose();
    expect(() => stream.step(5)).toThrow(
      'featureMaps.cosFormer: expected positions below maxLength (4); got position 4.',
    );
    expect(stream.position).toBe(4);
    stream.dispose();
    model.dispose();
  });

  test('favor in its numerator form, long enough for segments, is what the short form gives', () => {
    tf.tidy(() => {
      const args = {numHeads: 2, keyDim: 4, causal: true, rotary: 'numerator' as const};
      const layer = layers.linearAttention({...args, featureMap: featureMaps.favor({numFeatures: 20})});
      const x = values([1, 200, 6], 1);
      const whole = layer.apply(x) as tf.Tensor;
      let state = layer.streamState(1);
      const rows: tf.Tensor[] = [];
      for (let at = 0; at < 200; at += 50) {
        const next = layer.streamCall(tf.slice(x, [0, at, 0], [1, 50, 6]), state, {positions: at});
        rows.push(next.output);
        state = next.state;
      }
      expect(difference(whole.dataSync(), tf.concat(rows, 1).dataSync(), FLOAT32)).toBeNull();
    });
  });

  test('one map object serves two layers, and both train', async () => {
    const map = featureMaps.hedgehog();
    const input = tfl.input({shape: [6, 4]});
    const attention = (name: string) =>
      layers.linearAttention({name, numHeads: 2, keyDim: 3, featureMap: map});
    const [first, second] = [attention('first'), attention('second')];
    const model = tfl.model({
      inputs: input,
      outputs: second.apply(first.apply(input)) as tfl.SymbolicTensor,
    });
    model.compile({optimizer: tf.train.sgd(0.05), loss: 'meanSquaredError'});
    const weights = () => [first, second].map((layer) => Array.from(layer.getWeights()[8].dataSync()));
    const before = weights();
    const [x, y] = [values([2, 6, 4], 1), values([2, 6, 4], 2)];
    await model.fit(x, y, {epochs: 2, verbose: 0});
    const [a, b] = weights();
    expect([a, b]).not.toContainEqual(before[0]);
    expect(a).not.toEqual(b);
    tf.dispose([x, y]);
    model.dispose();
  });
});

describeOnBackends('redrawn features', () => {
  const projections = (model: tfl.LayersModel) =>
    model.layers
      .filter((layer) => layer instanceof LinearAttention)
      .map((layer) => Array.from(layer.getWeights()[8].dataSync()));

  test('are new in every layer, the same for the same seed, and what is saved', async () => {
    const model = language('favor');
    const [first, same] = projections(model);
    expect(first).toEqual(same);
    expect(layers.redrawFeatures(model, 5)).toBe(2);
    const drawn = projections(model);
    expect(drawn[0]).not.toEqual(first);
    expect(drawn[0]).not.toEqual(drawn[1]);
    await expectNoLeak(() => layers.redrawFeatures(model, 5));
    expect(projections(model)).toEqual(drawn);
    const loaded = await saveAndLoad(model);
    expect(projections(loaded)).toEqual(drawn);
    expect(streamed(loaded)).toEqual(streamed(model));
    model.dispose();
    loaded.dispose();
  });

  test('come on schedule in fit and in train, and never otherwise', async () => {
    const model = language('favor');
    const schedule = training.redrawSchedule(model, {every: 2, until: 6, seed: 1});
    const tokens = Array.from({length: 200}, (_, i) => (i * i) % 7);
    const seen = [JSON.stringify(projections(model))];
    await training.train(model, tokens, {
      ...{steps: 7, batchSize: 2, length: 8},
      onProgress: ({step}) => {
        schedule.onStep(step);
        seen.push(JSON.stringify(projections(model)));
      },
    });
    const changes = seen.slice(1).map((projection, i) => projection !== seen[i]);
    expect(changes).toEqual([false, true, false, true, false, false, false]);
    training.compile(model, {optimizer: tf.train.sgd(0.01)});
    const x = tf.tensor2d([IDS, IDS, IDS], [3, 8], 'int32');
    await model.fit(x, x, {
      batchSize: 1,
      epochs: 1,
      verbose: 0,
      callbacks: training.redrawSchedule(model, {every: 3}),
    });
    expect(JSON.stringify(projections(model))).not.toBe(seen[seen.length - 1]);
    x.dispose();
    model.dispose();
  });

  test('are refused where nothing is random, or nothing is there yet', () => {
    const model = language('elu');
    expect(() => layers.redrawFeatures(model, 1)).toThrow(
      'layers.redrawFeatures: the model has no LinearAttention layer with a random feature map.',
    );
    const layer = layers.linearAttention({name: 'mine', numHeads: 1, keyDim: 2});
    expect(() => layer.redraw(1)).toThrow(
      "LinearAttention 'mine'.redraw: feature map 'elu' has nothing random to draw again.",
    );
    const unbuilt = layers.linearAttention({name: 'new', numHeads: 1, keyDim: 2, featureMap: 'favor'});
    expect(() => unbuilt.redraw(1)).toThrow("LinearAttention 'new'.redraw: the layer has no weights yet");
    model.dispose();
  });
});

describeOnBackends('the softmax map', () => {
  test('spreads each feature of the keys over the sequence: constant values come out as they are', () => {
    tf.tidy(() => {
      const [q, k] = [values([1, 2, 3, 4], 1), values([1, 2, 5, 4], 2)];
      const output = linearAttention(q, k, tf.fill([1, 2, 5, 2], 7), {featureMap: 'softmax'});
      expect(difference(output.dataSync(), Array(12).fill(7), FLOAT32)).toBeNull();
    });
  });

  test('is not shifted by large inputs, and ignores what is masked, a whole row too', () => {
    tf.tidy(() => {
      const [q, k, v] = [4, 4, 2].map((width, i) => values([2, 1, 5, width], i));
      const run = (shift: number, keys: tf.Tensor) =>
        linearAttention(tf.add(q, shift), tf.add(keys, shift), v, {
          featureMap: 'softmax',
          mask: [
            [1, 1, 0, 1, 0],
            [0, 0, 0, 0, 0],
          ],
        }).dataSync();
      const plain = run(0, k);
      expect(difference(run(200, k), plain, {rms: 1e-4, max: 1e-3})).toBeNull();
      const bad = tf.where(
        tf.tensor([0, 0, 1, 0, 1], [1, 1, 5, 1], 'bool'),
        tf.fill([2, 1, 5, 4], Number.NaN),
        k,
      );
      expect(run(0, bad)).toEqual(plain);
      expect(Array.from(plain.slice(10))).toEqual(Array(10).fill(0));
    });
  });
});
