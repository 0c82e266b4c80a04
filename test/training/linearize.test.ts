/** From softmax to linear attention: the maps learn the weights, then all weights learn the text. */
import * as tf from '@tensorflow/tfjs-core';
import {type LinearAttention, models, training} from '../../index';
import {random} from '../../src/random';
import {describeOnBackends, expectNoLeak, useBackend} from '../helpers/backends';
import {messageOf} from '../helpers/numbers';

/** Motifs of four tokens, each said three times: what follows is known to who looks four tokens back. */
function motifs(count: number): number[] {
  const rng = random(1);
  return Array.from({length: count}, () => {
    const motif = Array.from({length: 4}, () => rng.below(6));
    return [...motif, ...motif, ...motif];
  }).flat();
}

const softmaxModel = () =>
  models.transformer({
    vocabSize: 6,
    dModel: 16,
    numLayers: 1,
    numHeads: 2,
    ffnDim: 16,
    attention: 'softmax',
    seed: 2,
  });
const DATA = motifs(120);

describe('training.linearize', () => {
  // Two hundred training steps: on the fastest backend here.
  beforeAll(() => useBackend('wasm'));

  test('loses by converting, and regains some by each stage; the softmax model stays as it is', async () => {
    const model = softmaxModel();
    await training.train(model, DATA, {steps: 60, batchSize: 16, length: 12, learningRate: 0.02});
    const before = model.getWeights().map((weight) => Array.from(weight.dataSync()));
    const tensors = tf.memory().numTensors;
    const said: string[] = [];
    const result = await training.linearize(model, DATA, {
      ...{batchSize: 16, length: 12, validation: 0.2},
      distill: {steps: 40, learningRate: 0.03},
      fineTune: {steps: 30, learningRate: 0.01},
      onStage: ({stage}) => said.push(stage),
    });
    const {stages, distilled, model: linear} = result;
    expect(said).toEqual(['softmax', 'converted', 'distilled', 'fine-tuned']);
    const [softmax, converted, fitted, tuned] = stages;
    expect(softmax.bitsPerCharacter).toBeLessThan(2);
    expect(converted.lost).toBeGreaterThan(0.05);
    expect(fitted.loss).toBeLessThan(converted.loss);
    expect(tuned.loss).toBeLessThan(fitted.loss);
    expect(tuned.lost).toBeCloseTo(tuned.bitsPerCharacter - softmax.bitsPerCharacter, 10);
    expect(tuned.regained).toBeCloseTo(fitted.bitsPerCharacter - tuned.bitsPerCharacter, 10);
    expect(distilled?.map(({name}) => name)).toEqual(['block_0_attention']);
    expect(distilled?.[0].after).toBeLessThan(0.7 * (distilled?.[0].before as number));
    expect(model.getWeights().map((weight) => Array.from(weight.dataSync()))).toEqual(before);
    linear.dispose();
    expect(tf.memory().numTensors).toBe(tensors);
    model.dispose();
  });
});

describeOnBackends('the stages of training.linearize', () => {
  test('leave out what was not asked for, and what a map cannot do', async () => {
    const model = softmaxModel();
    const options = {batchSize: 4, length: 8, validation: DATA.slice(0, 50), fineTune: {steps: 1}};
    for (const [more, stages] of [
      [{featureMap: 'elu'}, ['softmax', 'converted', 'fine-tuned']],
      [{featureMap: 'rebased', distill: {steps: 1}, fineTune: false}, ['softmax', 'converted', 'distilled']],
      [{distill: false}, ['softmax', 'converted', 'fine-tuned']],
      [{signal: AbortSignal.abort()}, ['softmax', 'converted']],
    ] as const) {
      const result = await training.linearize(model, DATA, {...options, ...more});
      expect(result.stages.map(({stage}) => stage)).toEqual(stages);
      result.model.dispose();
    }
    model.dispose();
  });
});

describeOnBackends('training.distill', () => {
  test('changes the maps only, the same way each time, and leaks nothing', async () => {
    const teacher = softmaxModel();
    const results = [];
    for (let i = 0; i < 2; i++) {
      const student = models.convert(teacher, {featureMap: 'hedgehog'});
      const layer = student.getLayer('block_0_attention') as LinearAttention;
      const others = () =>
        student.weights
          .filter((weight) => !layer.weights.slice(8).includes(weight))
          .map((weight) => Array.from(weight.read().dataSync()));
      const before = others();
      const steps: number[] = [];
      await expectNoLeak(async () => {
        await training.distill(student, teacher, DATA, {
          ...{steps: 3, batchSize: 4, length: 8},
          onProgress: ({step}) => steps.push(step),
        });
      });
      expect(steps).toEqual([1, 2, 3]);
      expect(others()).toEqual(before);
      results.push(layer.weights.slice(8).map((weight) => Array.from(weight.read().dataSync())));
      student.dispose();
    }
    expect(results[0]).toEqual(results[1]);
    expect(new Set(results[0][1]).size).toBeGreaterThan(1); // b is not zeros any more
    teacher.dispose();
  });

  test('refuses what it cannot do', async () => {
    const teacher = softmaxModel();
    const fixed = models.convert(teacher, {featureMap: 'elu'});
    const learned = models.convert(teacher);
    const tries: [Promise<unknown>, string][] = [
      [training.distill(fixed, teacher, DATA, {steps: 1}), 'expected student to have LinearAttention layers with trainable feature maps'],
      [training.distill(learned, fixed, DATA, {steps: 1}), "SoftmaxAttention layers of teacher (none)."],
      [training.distill(learned, teacher, [1, 2], {steps: 1}), 'expected data to hold at least length + 1 = 65 tokens'],
      [training.distill(learned, teacher, DATA, {steps: 0}), 'expected steps to be a whole number of at least 1; got 0.'],
      [training.distill(learned, teacher, DATA, {step: 1} as never), "unknown option 'step'"],
    ]; // biome-ignore format: a table
    for (const [attempt, message] of tries) {
      const error = await attempt.then(
        () => null,
        (reason: Error) => reason,
      );
      expect(messageOf(() => { throw error; })).toContain(`training.distill: `); // biome-ignore format: short
      expect(error?.message).toContain(message);
    }
    await expect(training.linearize(fixed, DATA)).rejects.toThrow(
      'models.convert: the model has no SoftmaxAttention layer to convert.',
    );
    for (const m of [teacher, fixed, learned]) m.dispose();
  });
});
