/** The main promise in small: a transformer with linear attention learns to copy, on every backend. */
import * as tf from '@tensorflow/tfjs-core';
import {models, patches, training} from '../../index';
import {random} from '../../src/random';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';

const SYMBOLS = 5;
const COPIED = 3;
const LENGTH = 2 * COPIED + 1;
/** Nothing tells the symbols of the first half in advance; all else can be known. */
const FLOOR = ((COPIED - 1) * Math.log(SYMBOLS)) / LENGTH;

/** Rows `abc | abc |`, as inputs and targets [rows, LENGTH]. */
function copies(rows: number, seed: number): {x: tf.Tensor2D; y: tf.Tensor2D} {
  const rng = random(seed);
  const texts = Array.from({length: rows}, () => {
    const text = Array.from({length: COPIED}, () => 1 + rng.below(SYMBOLS));
    return [...text, 0, ...text, 0];
  });
  const part = (from: number) =>
    tf.tensor2d(
      texts.map((text) => text.slice(from, from + LENGTH)),
      [rows, LENGTH],
      'int32',
    );
  return {x: part(0), y: part(1)};
}

describeOnBackends('copy task', () => {
  test('a transformer with linear attention comes within 0.1 nats of the best possible loss, on new sequences too', async () => {
    const undo = patches.wasmTraining();
    await expectNoLeak(async () => {
      const model = models.transformer({
        vocabSize: SYMBOLS + 1,
        dModel: 32,
        numLayers: 1,
        numHeads: 2,
        ffnDim: 32,
        position: 'learned',
        maxLength: LENGTH,
        seed: 1,
      });
      const optimizer = training.adamW({learningRate: 0.01});
      training.compile(model, {optimizer});
      const {x, y} = copies(256, 5);
      const fresh = copies(64, 6);
      const history = await model.fit(x, y, {epochs: 7, batchSize: 32, shuffle: false, verbose: 0});
      const losses = history.history['loss'] as number[];
      const evaluated = model.evaluate(fresh.x, fresh.y) as tf.Scalar;
      const loss = (await evaluated.data())[0]!;
      tf.dispose([x, y, fresh.x, fresh.y, evaluated]);
      optimizer.dispose();
      model.dispose();
      expect(losses[0]).toBeGreaterThan(FLOOR + 0.5);
      expect(losses.at(-1)).toBeLessThan(FLOOR + 0.1);
      expect(loss).toBeLessThan(FLOOR + 0.1);
    });
    undo();
  }, 180_000);
});
