/** Random features that training.train draws anew: on schedule, the same after a resume, refused where they cannot be right. */
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {featureMaps, LinearAttention, models, training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {stream, VOCAB, weightsOf} from './small_model';

const DATA = stream(300);
const RUN = {steps: 9, batchSize: 2, length: 8, learningRate: 0.02, seed: 5, every: 4};
const REDRAW = {every: 2, seed: 3, until: 7};

const model = (featureMap: object | string = featureMaps.favor({numFeatures: 6})): LayersModel =>
  models.transformer({
    ...{vocabSize: VOCAB, dModel: 8, numLayers: 2, numHeads: 2, seed: 1},
    featureMap: featureMap as never,
  });
const directions = (of: LayersModel): string =>
  JSON.stringify(
    of.layers
      .filter((layer) => layer instanceof LinearAttention)
      .map((layer) => Array.from(Object.values(layer.featureMapWeights()!)[0]!.dataSync())),
  );

describeOnBackends('training.train with redraw', () => {
  test('draws before every second step until the seventh, and nothing after the last', async () => {
    const trained = model();
    const seen: string[] = [directions(trained)];
    const onProgress = () => seen.push(directions(trained));
    await training.train(trained, DATA, {...RUN, redraw: REDRAW, onProgress});
    expect(seen.slice(1).map((now, i) => now !== seen[i])).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((step) => [3, 5, 7].includes(step)),
    );
    trained.dispose();
  });

  test.each([1, 2, 4, 5, 6])(
    'a run resumed after step %i is the uninterrupted run, bit for bit',
    async (stop) => {
      await expectNoLeak(async () => {
        const run = {...RUN, redraw: REDRAW};
        const whole = model();
        const {history} = await training.train(whole, DATA, run);
        let saved: Uint8Array | null = null;
        const checkpoint = {
          save: (bytes: Uint8Array) => {
            saved = bytes.slice();
          },
          load: () => saved,
        };
        const controller = new AbortController();
        const stopped = model();
        await training.train(stopped, DATA, {
          ...{...run, checkpoint, signal: controller.signal},
          onProgress: ({step}) => step === stop && controller.abort(),
        });
        stopped.dispose();
        const resumed = model();
        const rest = await training.train(resumed, DATA, {...run, checkpoint, resume: true});
        expect(rest.history.map(({loss}) => loss)).toEqual(history.slice(stop).map(({loss}) => loss));
        expect(weightsOf(resumed)).toEqual(weightsOf(whole));
        whole.dispose();
        resumed.dispose();
      });
    },
  );

  test('is refused without random features, with workers, and with options that mean nothing', async () => {
    const [random, plain] = [model(), model('elu')];
    const before = weightsOf(random);
    const train = (of: LayersModel, options: object) => training.train(of, DATA, {...RUN, ...options});
    await expect(train(plain, {redraw: REDRAW})).rejects.toThrow(
      'training.train: redraw was given, and the model has no LinearAttention layer with a random feature map.',
    );
    await expect(train(random, {redraw: REDRAW, workers: 2})).rejects.toThrow(
      'training.train: expected workers to be 1 with redraw: the other threads would keep the old directions; got 2.',
    );
    await expect(train(random, {redraw: {}})).rejects.toThrow(
      'training.train: redraw: expected every to be a whole number of at least 1; got undefined.',
    );
    await expect(train(random, {redraw: {every: 2, untill: 3}})).rejects.toThrow("unknown option 'untill'");
    expect(weightsOf(random)).toEqual(before);
    random.dispose();
    plain.dispose();
  });
});
