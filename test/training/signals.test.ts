/** Every function that an AbortSignal stops refuses what is none, before any work. */
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {generation, models, training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {stream, VOCAB, weightsOf} from './small_model';

const DATA = stream(200);

type Call = (models: {softmax: LayersModel; linear: LayersModel}, signal: never) => unknown;
const CALLS: {[name: string]: Call} = {
  'training.train': ({linear}, signal) => training.train(linear, DATA, {steps: 1, length: 8, signal}),
  'training.evaluate': ({linear}, signal) => training.evaluate(linear, DATA, {length: 8, signal}),
  'training.distill': ({linear, softmax}, signal) =>
    training.distill(linear, softmax, DATA, {steps: 1, length: 8, signal}),
  'training.linearize': ({softmax}, signal) =>
    training.linearize(softmax, DATA, {length: 8, distill: {steps: 1}, fineTune: {steps: 1}, signal}),
  'generation.generate': ({linear}, signal) =>
    generation.generate(linear, [1], {maxNewTokens: 1, signal}).next(),
};

describeOnBackends('a signal that is none', () => {
  test.each(Object.entries(CALLS))('is refused by %s', async (name, call) => {
    await expectNoLeak(async () => {
      const softmax = models.transformer({
        ...{vocabSize: VOCAB, dModel: 4, numLayers: 1, numHeads: 1, seed: 1},
        attention: 'softmax',
      });
      const linear = models.convert(softmax);
      const before = weightsOf(linear);
      for (const [wrong, shown] of [
        [true, 'true'],
        [null, 'null'],
        [{aborted: false}, 'an object with keys aborted'],
        [new AbortController(), 'an object with keys'],
      ] as const) {
        await expect((async () => call({softmax, linear}, wrong as never))()).rejects.toThrow(
          `${name}: expected signal to be an AbortSignal; got ${shown}`,
        );
      }
      expect(weightsOf(linear)).toEqual(before);
      softmax.dispose();
      linear.dispose();
    });
  });
});
