import * as tf from '@tensorflow/tfjs-core';
import {generation, models} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {messageOf} from '../helpers/numbers';

describeOnBackends('sampler', () => {
  test('with a stream it writes what generate writes, for the same options and seed', async () => {
    const model = models.transformer({vocabSize: 12, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
    await expectNoLeak(async () => {
      for (const options of [{seed: 3}, {seed: 4, temperature: 0.6, topK: 5, topP: 0.9}, {temperature: 0}]) {
        const expected: number[] = [];
        for await (const id of generation.generate(model, [3, 1], {...options, maxNewTokens: 12})) {
          expected.push(id);
        }
        const pick = generation.sampler(options);
        const stream = generation.stream(model);
        const got: number[] = [];
        for (let logits = stream.prefill([3, 1]); got.length < 12; logits = stream.step(got.at(-1)!)) {
          got.push(pick(logits.dataSync()));
          logits.dispose();
          if (got.length === 12) break;
        }
        stream.dispose();
        expect(got).toEqual(expected);
      }
    });
    model.dispose();
  });
});

test.each([
  [{temperature: -1}, /temperature/],
  [{topK: 0}, /topK/],
  [{topP: 2}, /topP/],
  [{seed: 0.5}, /seed/],
  [{heat: 1}, /heat/],
])('sampler refuses %o and names the option', (options, pattern) => {
  expect(messageOf(() => generation.sampler(options as object))).toMatch(pattern);
});

describeOnBackends('sampler refuses logits that are no list of numbers', () => {
  test.each([
    ['nothing', () => undefined, /sampler: expected logits to be numbers.*got undefined/],
    ['a tensor', () => tf.ones([1, 3]), /got a float32 tensor of shape \[1,3\]/],
    ['rows', () => [[1, 2, 3]], /got \[\[1,2,3\]\]/],
    ['texts', () => [1, 'x'], /got \[1,'x'\]/],
  ])('%s', (_name, logits, pattern) => {
    const given = logits();
    expect(messageOf(() => generation.sampler()(given as never))).toMatch(pattern);
    tf.dispose(given as tf.TensorContainer);
  });
});

test('sampler refuses logits that are NaN', () => {
  expect(messageOf(() => generation.sampler()([0, Number.NaN]))).toMatch(/sampler.*logit 1 is NaN/);
});
