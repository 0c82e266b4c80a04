/** Prompts of unequal length: padding leaves its row's state, position and logits as they were. */
import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {generation, models} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {valuesOf} from '../helpers/numbers';

const V = 7;
const PROMPTS = [
  [3, 1, 4, 1, 5],
  [2, 6],
  [5, 3, 5],
];
const NEXT = [2, 4, 6];

/** Logits after the prompt and after one more token, each row alone and unpadded. */
const alone = (model: LayersModel) =>
  PROMPTS.map((prompt, row) => {
    const stream = generation.stream(model);
    const values = [valuesOf(() => stream.prefill(prompt)), valuesOf(() => stream.step(NEXT[row]))];
    stream.dispose();
    return values;
  });

const layouts: {[name: string]: (prompt: number[]) => (number | null)[]} = {
  left: (prompt) => [...Array(6 - prompt.length).fill(null), ...prompt],
  right: (prompt) => [...prompt, ...Array(6 - prompt.length).fill(null)],
  'both sides': (prompt) => [null, ...prompt, ...Array(5 - prompt.length).fill(null)],
  interior: (prompt) => [prompt[0], ...Array(6 - prompt.length).fill(null), ...prompt.slice(1)],
};

describeOnBackends('padded prefill', () => {
  for (const attention of ['linear', 'softmax'] as const) {
    for (const position of ['rotary', 'learned', 'sinusoidal'] as const) {
      test(`${attention}, ${position}: each row is what it is alone, wherever its padding stands`, async () => {
        await expectNoLeak(() => {
          const model = models.transformer({
            ...{vocabSize: V, dModel: 8, numLayers: 2, numHeads: 2, seed: 4},
            // Exactly as long as the longest row: padding must not count.
            ...{attention, position, maxLength: 6},
          });
          const want = alone(model);
          for (const [name, layout] of Object.entries(layouts)) {
            for (const cuts of [[6], [2, 4], [1, 1, 4]]) {
              const rows = PROMPTS.map(layout);
              const stream = generation.stream(model, {batchSize: 3});
              let at = 0;
              let logits: number[] = [];
              for (const cut of cuts) {
                const piece = rows.map((row) => row.slice(at, at + cut));
                // What stands under the mask is never looked at, not even as an id.
                const ids = piece.map((row) => row.map((id) => id ?? 99));
                const mask = piece.map((row) => row.map((id) => id !== null));
                logits = valuesOf(() => stream.prefill(ids, {mask}));
                at += cut;
              }
              expect(stream.positions).toEqual([5, 2, 3]);
              expect(stream.position).toBe(5);
              const stepped = valuesOf(() => stream.step(NEXT));
              expect(stream.positions).toEqual([6, 3, 4]);
              for (let row = 0; row < 3; row++) {
                const part = (values: number[]) => values.slice(row * V, (row + 1) * V);
                const faults = [
                  difference(part(logits), want[row][0], FLOAT32),
                  difference(part(stepped), want[row][1], FLOAT32),
                ];
                expect([name, cuts, row, ...faults]).toEqual([name, cuts, row, null, null]);
              }
              stream.dispose();
            }
          }
          model.dispose();
        });
      });
    }
  }

  test('a piece of padding only changes nothing, and gives the logits from before', () => {
    const model = models.transformer({
      vocabSize: V,
      dModel: 8,
      numLayers: 1,
      numHeads: 2,
      attention: 'softmax',
    });
    const stream = generation.stream(model);
    const padding = () => valuesOf(() => stream.prefill([0, 0], {mask: [0, 0]}));
    expect(padding()).toEqual(Array(V).fill(0));
    const logits = valuesOf(() => stream.prefill([1, 2]));
    const bytes = stream.stateBytes;
    expect(padding()).toEqual(logits);
    expect([stream.position, stream.stateBytes]).toEqual([2, bytes]);
    stream.dispose();
    model.dispose();
  });

  test('one row with padding gives the unpadded bits', () => {
    const model = models.transformer({
      vocabSize: V,
      dModel: 8,
      numLayers: 2,
      numHeads: 2,
      attention: ['linear', 'softmax'],
    });
    const run = (ids: number[], mask?: tf.Tensor | tf.TensorLike) => {
      const stream = generation.stream(model);
      const logits = valuesOf(() => stream.prefill(ids, mask === undefined ? {} : {mask}));
      stream.dispose();
      return logits;
    };
    expect(run([0, 3, 0, 4, 0], [[0, 1, 0, 1, 0]])).toEqual(run([3, 4]));
    expect(tf.tidy(() => run([3, 4, 5], tf.tensor1d([1, 1, 0], 'bool')))).toEqual(run([3, 4]));
    model.dispose();
  });

  test('id 0 is padding by itself in a model with maskZero', () => {
    const model = models.transformer({
      vocabSize: V,
      dModel: 8,
      numLayers: 1,
      numHeads: 2,
      position: 'none',
      maskZero: true,
    });
    const [plain, padded] = [1, 2].map((batchSize) => generation.stream(model, {batchSize}));
    const want = valuesOf(() => plain.prefill([3, 4]));
    const got = valuesOf(() =>
      padded.prefill([
        [0, 3, 4],
        [3, 4, 5],
      ]),
    );
    expect(difference(got.slice(0, V), want, FLOAT32)).toBeNull();
    // As predict has it where padding shifts no position.
    const ids = [[0, 0, 3, 4]];
    const predicted = valuesOf(() => model.predict(tf.tensor2d(ids, undefined, 'int32')) as tf.Tensor);
    expect(difference(predicted.slice(-V), want, FLOAT32)).toBeNull();
    expect(valuesOf(() => plain.step(0))).toEqual(want);
    expect([plain.position, padded.positions]).toEqual([2, [2, 3]]);
    plain.dispose();
    padded.dispose();
    model.dispose();
  });
});
