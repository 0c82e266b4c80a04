/** Windows of a token stream, evaluation over them, schedules and clipping: pure functions of their arguments. */
import * as tf from '@tensorflow/tfjs-core';
import {training} from '../../index';
import {prepareData, Windows} from '../../training/data';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {bigram, stream, VOCAB} from './small_model';

const count = (size: number) => Int32Array.from({length: size}, (_, i) => i);

describe('windows', () => {
  test('targets are the inputs moved by one', () => {
    const {inputs, targets} = new Windows(count(100), 7, 1).batch(0, 5);
    expect(inputs).toHaveLength(35);
    expect(Array.from(targets)).toEqual(Array.from(inputs, (id) => id + 1));
  });

  test('an epoch takes windows side by side, each once, in another order and from another place than the next epoch', () => {
    const windows = new Windows(count(1000), 10, 3);
    const epochs = [0, 1].map((epoch) =>
      Array.from(
        {length: windows.perEpoch},
        (_, i) => windows.batch(epoch * windows.perEpoch + i, 1).inputs[0]!,
      ),
    );
    for (const starts of epochs) {
      const sorted = [...starts].sort((a, b) => a - b);
      expect(sorted.map((start, i) => start - sorted[0]! - 10 * i)).toEqual(starts.map(() => 0));
      expect(sorted.at(-1)! + 11).toBeLessThanOrEqual(1000);
      expect(starts).not.toEqual(sorted);
    }
    expect(windows.perEpoch).toBe(99);
    expect(epochs[0]).not.toEqual(epochs[1]);
  });

  test('over many epochs every token is an input and every token but the first a target', () => {
    const windows = new Windows(count(40), 7, 2);
    const {inputs, targets} = windows.batch(0, 60 * windows.perEpoch);
    expect(new Set(inputs).size).toBe(39);
    expect(new Set(targets).size).toBe(39);
  });

  test('a window depends on its number and the seed, not on what was asked before', () => {
    const one = new Windows(count(200), 8, 5);
    const two = new Windows(count(200), 8, 5);
    one.batch(0, 400);
    expect(one.batch(333, 4)).toEqual(two.batch(333, 4));
    expect(new Windows(count(200), 8, 6).batch(333, 4)).not.toEqual(two.batch(333, 4));
  });

  test.each([
    [2, 1],
    [9, 8],
    [10, 8],
    [16, 8],
    [17, 8],
    [24, 8],
  ])('%d tokens and windows of %d stay inside the data', (size, length) => {
    const windows = new Windows(count(size), length, 1);
    const {inputs, targets} = windows.batch(0, 50);
    expect(Math.min(...inputs)).toBe(0);
    expect(Math.max(...targets)).toBe(size - 1);
  });

  test('a fraction keeps the last part for validation; arrays and typed arrays are the same', () => {
    const split = prepareData('f', Array.from(count(100)), 0.2, 4, null);
    expect(Array.from(split.train)).toEqual(Array.from(count(80)));
    expect(Array.from(split.validation!)).toEqual(Array.from(count(100).slice(80)));
    expect(prepareData('f', Uint8Array.from(count(100)), 0.2, 4, null)).toEqual(split);
    expect(prepareData('f', {train: split.train, validation: split.validation}, undefined, 4, null)).toEqual(
      split,
    );
    expect(prepareData('f', {train: split.train}, split.validation, 4, null)).toEqual(split);
    expect(prepareData('f', count(100), undefined, 4, null).validation).toBeNull();
  });
});

describeOnBackends('training.evaluate', () => {
  test('averages over all whole windows, whatever the batch size', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      const data = stream(70);
      const want = tf.tidy(() => {
        const [x, y] = [0, 1].map((from) =>
          tf.tensor2d(Array.from(data.slice(from, from + 64)), [8, 8], 'int32'),
        );
        return training.tokenLoss(y!, model.predict(x!) as tf.Tensor).dataSync()[0]!;
      });
      for (const batchSize of [1, 3, 8, 100]) {
        const got = await training.evaluate(model, data, {length: 8, batchSize});
        expect(got.loss).toBeCloseTo(want, 5);
        expect(got.perplexity).toBeCloseTo(Math.exp(want), 4);
        expect(got.bitsPerCharacter).toBeCloseTo(want / Math.LN2, 5);
        expect(got.tokens).toBe(64);
      }
      const {bitsPerCharacter} = await training.evaluate(model, data, {length: 8, charactersPerToken: 4});
      expect(bitsPerCharacter).toBeCloseTo(want / Math.LN2 / 4, 5);
      expect((await training.evaluate(model, data, {length: 8, maxWindows: 3})).tokens).toBe(24);
      model.dispose();
    });
  });

  test('dropout is off: twice is the same', async () => {
    const model = bigram(0.5);
    const one = await training.evaluate(model, stream(70), {length: 8});
    expect(await training.evaluate(model, stream(70), {length: 8})).toEqual(one);
    model.dispose();
  });

  test('a signal stops it, wrong calls are refused', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      const data = stream(70);
      const call = (tokens: unknown, options: unknown) =>
        training.evaluate(model, tokens as never, options as never);
      await expect(call(data, {length: 8, signal: AbortSignal.abort()})).rejects.toThrow(/abort/i);
      await expect(call(data, {size: 8})).rejects.toThrow(/training.evaluate: unknown option 'size'/);
      await expect(call(data, {length: 0})).rejects.toThrow(/expected length/);
      await expect(call(data, {length: 8, batchSize: 0})).rejects.toThrow(/expected batchSize/);
      await expect(call(data, {length: 8, charactersPerToken: 0})).rejects.toThrow(
        /expected charactersPerToken/,
      );
      await expect(call(data, {length: 70})).rejects.toThrow(/at least length \+ 1 = 71 tokens.*got 70/);
      await expect(call([VOCAB, ...data], {length: 8})).rejects.toThrow(
        /data\[0\] to be a token id in \[0, 7\)/,
      );
      model.dispose();
    });
  });
});

describe('training.schedule', () => {
  test('cosine: grows over the warm-up, then falls to a tenth', () => {
    const rate = training.schedule({learningRate: 1, steps: 21, warmup: 10});
    expect(rate(0)).toBeCloseTo(0.1, 12);
    expect(rate(9)).toBeCloseTo(1, 12);
    expect(rate(10)).toBeCloseTo(1, 12);
    expect(rate(15)).toBeCloseTo(0.1 + 0.9 * 0.5, 12);
    expect(rate(20)).toBeCloseTo(0.1, 12);
    expect(rate(100)).toBeCloseTo(0.1, 12);
  });

  test('linear and constant', () => {
    const linear = training.schedule({learningRate: 2, steps: 5, decay: 'linear', floor: 0});
    expect([0, 1, 2, 3, 4].map(linear)).toEqual([2, 1.5, 1, 0.5, 0]);
    const constant = training.schedule({learningRate: 2, steps: 5, warmup: 2, decay: 'constant'});
    expect([0, 1, 2, 4].map(constant)).toEqual([1, 2, 2, 2]);
  });

  test('a run of one step, and one that is all warm-up', () => {
    expect(training.schedule({learningRate: 1, steps: 1})(0)).toBe(1);
    expect(training.schedule({learningRate: 1, steps: 4, warmup: 8})(3)).toBe(0.5);
  });

  test('wrong options are refused', () => {
    const call = (options: object) => () => training.schedule(options as never);
    expect(call({learningRate: 1})).toThrow(/training.schedule: expected steps/);
    expect(call({steps: 1})).toThrow(/expected learningRate/);
    expect(call({learningRate: 1, steps: 1, warmup: 0.5})).toThrow(/expected warmup/);
    expect(call({learningRate: 1, steps: 1, decay: 'poly'})).toThrow(/expected decay/);
    expect(call({learningRate: 1, steps: 1, floor: 2})).toThrow(/expected floor to be a number in \[0, 1\]/);
    expect(call({learningRate: 1, steps: 1, peak: 2})).toThrow(/unknown option 'peak'/);
  });
});

describeOnBackends('clipping', () => {
  test('scales all tensors by one factor, and only when the norm is too large', async () => {
    await expectNoLeak(() => {
      const tensors = [tf.tensor1d([3, 0]), tf.tensor2d([[0, 4]])];
      for (const [bound, factor] of [
        [1, 0.2],
        [5, 1],
        [10, 1],
      ] as const) {
        const {clipped, norm} = training.clipByGlobalNorm(tensors, bound);
        expect(norm.dataSync()[0]).toBeCloseTo(5, 6);
        expect(clipped[0]!.dataSync()[0]).toBeCloseTo(3 * factor, 6);
        expect(clipped[1]!.dataSync()[1]).toBeCloseTo(4 * factor, 6);
        expect(clipped[1]!.shape).toEqual([1, 2]);
        tf.dispose([...clipped, norm]);
      }
      tf.dispose(tensors);
    });
  });

  test('NaN shows in the norm; no tensors have the norm 0; wrong calls are refused', async () => {
    await expectNoLeak(() => {
      const x = tf.tensor1d([1, Number.NaN]);
      const norms = [training.globalNorm([x]), training.globalNorm([])];
      expect(norms[0]!.dataSync()[0]).toBeNaN();
      expect(norms[1]!.dataSync()[0]).toBe(0);
      expect(() => training.clipByGlobalNorm([x], 0)).toThrow(
        /expected maxNorm to be a finite number above 0/,
      );
      tf.dispose([x, ...norms]);
      expect(() => training.globalNorm([x])).toThrow(/expected tensors to be an array of live tensors/);
    });
  });
});
