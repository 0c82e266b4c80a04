/** tfjs's own training calls with int32 targets [B,T] against logits [B,T,V]. */
import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, layers, sequential} from '@tensorflow/tfjs-layers';
import {models, patches, training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';

const V = 7;
const T = 5;
const ROWS = 12;

const tokens = (shift: number): tf.Tensor2D =>
  tf.tensor2d(
    Array.from({length: ROWS * T}, (_, i) => (i + shift) % V),
    [ROWS, T],
    'int32',
  );

/** As tf.data.Dataset would hand out batches. */
const dataset = (batchSize: number) => ({
  async iterator() {
    let batch = 0;
    return {
      async next() {
        if (batch * batchSize >= ROWS) {
          return {done: true, value: null};
        }
        const [xs, ys] = [tokens(0), tokens(1)];
        const value = {
          xs: tf.slice(xs, [batch * batchSize, 0], [batchSize, T]),
          ys: tf.slice(ys, [batch * batchSize, 0], [batchSize, T]),
        };
        tf.dispose([xs, ys]);
        batch += 1;
        return {done: false, value};
      },
    };
  },
});

/** The optimizer's slots are made by its first step, and are no leak. Disposes y. */
async function makeSlots(model: LayersModel, y: tf.Tensor): Promise<void> {
  const x = tokens(0);
  await model.trainOnBatch(x, y);
  tf.dispose([x, y]);
}

describeOnBackends('training.compile', () => {
  let undo: () => void;
  let model: LayersModel;
  let optimizer: tf.Optimizer;

  beforeEach(() => {
    undo = patches.wasmTraining();
    model = models.transformer({vocabSize: V, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
    optimizer = training.adamW({learningRate: 0.03});
    training.compile(model, {optimizer});
  });

  afterEach(() => {
    model.dispose();
    optimizer.dispose();
    undo();
  });

  test('fit takes int32 targets, with validation data, and the loss falls', async () => {
    await expectNoLeak(async () => {
      const [x, y] = [tokens(0), tokens(1)];
      const again = () =>
        model.fit(x, y, {epochs: 15, batchSize: 6, shuffle: true, verbose: 0, validationData: [x, y]});
      // The first call makes the optimizer's slots.
      const first = await again();
      const before = tf.memory().numTensors;
      const second = await again();
      expect(tf.memory().numTensors).toBe(before);
      const losses = [...first.history['loss']!, ...second.history['loss']!] as number[];
      expect(losses[0]).toBeGreaterThan(1.5);
      expect(losses.at(-1)).toBeLessThan(0.3);
      expect(second.history['val_loss']!.at(-1)).toBeLessThan(0.3);
      tf.dispose([x, y]);
      optimizer.dispose();
    });
  });

  test('fitDataset takes batches of int32 targets', async () => {
    const history = await model.fitDataset(dataset(6) as never, {epochs: 15, verbose: 0});
    const losses = history.history['loss'] as number[];
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
  });

  test('trainOnBatch returns the loss before the update, evaluate the loss after it, as the token loss says', async () => {
    const [x, y] = [tokens(0), tokens(1)];
    const lossNow = () => tf.tidy(() => training.tokenLoss(y, model.predict(x) as tf.Tensor).dataSync()[0]!);
    const before = lossNow();
    expect(await model.trainOnBatch(x, y)).toBeCloseTo(before, 5);
    const evaluated = model.evaluate(x, y, {batchSize: ROWS}) as tf.Scalar;
    const after = evaluated.dataSync()[0]!;
    expect(after).toBeCloseTo(lossNow(), 5);
    expect(after).toBeLessThan(before);
    tf.dispose([x, y, evaluated]);
  });

  test('other batch sizes and lengths work in the same model', async () => {
    for (const shape of [
      [1, 3],
      [4, 9],
    ] as [number, number][]) {
      const x = tf.zeros(shape, 'int32');
      expect(Number.isFinite(await model.trainOnBatch(x, x))).toBe(true);
      x.dispose();
    }
  });

  test('metrics get the targets and the logits', async () => {
    const accuracy = (targets: tf.Tensor, logits: tf.Tensor) =>
      tf.mean(tf.cast(tf.equal(tf.argMax(logits, -1), targets), 'float32'));
    training.compile(model, {optimizer, metrics: [accuracy]});
    const [x, y] = [tokens(0), tokens(1)];
    const history = await model.fit(x, y, {epochs: 40, verbose: 0});
    const name = Object.keys(history.history).find((key) => key !== 'loss')!;
    expect(history.history[name]!.at(-1)).toBe(1);
    tf.dispose([x, y]);
  });

  test("'accuracy' is the share of targets whose logit is the largest, also where batch and length are the same", async () => {
    await makeSlots(model, tokens(1));
    await expectNoLeak(async () => {
      training.compile(model, {optimizer, metrics: ['accuracy']});
      const square = (shift: number) => tf.tidy(() => tf.slice(tokens(shift), [0, 0], [T, T]));
      const [x, y] = [square(0), square(1)];
      await model.fit(x, y, {epochs: 3, batchSize: T, verbose: 0});
      const [loss, got] = model.evaluate(x, y, {batchSize: T}) as tf.Scalar[];
      const predicted = tf.tidy(() => Array.from(tf.argMax(model.predict(x) as tf.Tensor, -1).dataSync()));
      const right = predicted.filter((id, i) => id === y.dataSync()[i]).length;
      expect(got!.dataSync()[0]).toBeCloseTo(right / (T * T), 6);
      const {history} = await model.fit(x, y, {epochs: 40, batchSize: T, verbose: 0});
      expect(Object.keys(history).sort()).toEqual(['acc', 'loss']);
      expect(history['acc']!.at(-1)).toBe(1);
      tf.dispose([x, y, loss!, got!]);
    });
  });

  test('a classifier takes one int32 label a sequence', async () => {
    const classifier = models.transformer({
      ...{vocabSize: V, dModel: 8, numLayers: 1, numHeads: 2, causal: false, numClasses: 3, seed: 1},
    });
    const own = training.adamW({learningRate: 0.03});
    training.compile(classifier, {optimizer: own, metrics: 'accuracy'});
    await makeSlots(classifier, tf.zeros([ROWS, 1], 'int32'));
    await expectNoLeak(async () => {
      const x = tokens(0);
      // Which of three the first token belongs to.
      const labels = tf.tidy(() => tf.reshape(tf.mod(tf.slice(x, [0, 0], [ROWS, 1]), 3), [ROWS]));
      const column = tf.reshape(labels, [ROWS, 1]);
      const want = tf.tidy(
        () => training.tokenLoss(labels, classifier.predict(x) as tf.Tensor).dataSync()[0]!,
      );
      for (const y of [labels, column]) {
        const [loss, share] = classifier.evaluate(x, y, {batchSize: ROWS}) as tf.Scalar[];
        expect(loss!.dataSync()[0]).toBeCloseTo(want, 5);
        tf.dispose([loss!, share!]);
      }
      await classifier.fit(x, labels, {epochs: 60, batchSize: ROWS, verbose: 0});
      const [loss, share] = classifier.evaluate(x, labels) as tf.Scalar[];
      expect(loss!.dataSync()[0]).toBeLessThan(want / 4);
      expect(share!.dataSync()[0]).toBe(1);
      await classifier.trainOnBatch(x, column);
      tf.dispose([x, labels, column, loss!, share!]);
    });
    classifier.dispose();
    own.dispose();
  });

  test('optimizers of tfjs work by name', async () => {
    await expectNoLeak(async () => {
      const own = sequential({
        layers: [layers.embedding({inputDim: V, outputDim: 4, inputShape: [T]}), layers.dense({units: V})],
      });
      training.compile(own, {optimizer: 'adam'});
      const [x, y] = [tokens(0), tokens(1)];
      await own.fit(x, y, {epochs: 2, verbose: 0});
      tf.dispose([x, y]);
      own.dispose();
    });
  });

  test('targets of another shape are refused', async () => {
    const [x, y] = [tokens(0), tf.zeros([ROWS, T + 1], 'int32')];
    await expect(model.trainOnBatch(x, y)).rejects.toThrow(/got targets \[12,6\], logits \[12,5,7\]/);
    tf.dispose([x, y]);
  });

  test('wrong calls are refused by name', () => {
    const wide = sequential({layers: [layers.reshape({targetShape: [2, 2, 2], inputShape: [8]})]});
    const cases: [() => unknown, RegExp][] = [
      [
        () => training.compile(undefined as never, {optimizer}),
        /expected model to be a tf.LayersModel; got undefined/,
      ],
      [
        () => training.compile(model, undefined as never),
        /expected args.optimizer to be an optimizer or its name/,
      ],
      [() => training.compile(model, {optimizer, loss: 'x'} as never), /unknown option 'loss'/],
      [() => training.compile(model, {} as never), /expected args.optimizer/],
      [() => training.compile(model, {optimizer: 'adamw'}), /adamw/],
      [
        () => training.compile(model, {optimizer, metrics: ['accuracy', 'categoricalAccuracy']}),
        /expected metrics to be 'accuracy' or functions .* got 'categoricalAccuracy'/,
      ],
      [
        () => training.compile(wide, {optimizer}),
        /expected a model whose output is logits \[B,T,V\] or \[B,V\]; got \[null,2,2,2\]/,
      ],
    ];
    for (const [call, message] of cases) {
      expect(call).toThrow(message);
    }
  });
});
