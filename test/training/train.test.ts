/** training.train: what it computes, how it stops, what it leaves behind. */
import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, layers, sequential} from '@tensorflow/tfjs-layers';
import {training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {bigram, copyWeights, stream, transformer, VOCAB, weightsOf} from './small_model';

const DATA = stream(400);
const QUICK = {steps: 4, batchSize: 2, length: 8, learningRate: 0.02, seed: 5};

describeOnBackends('training.train', () => {
  test('learns a predictable stream, and reports every step', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      const seen: training.TrainingProgress[] = [];
      const result = await training.train(model, DATA, {
        steps: 60,
        batchSize: 4,
        length: 16,
        learningRate: 0.1,
        validation: 0.25,
        every: 25,
        onProgress: (progress) => seen.push(progress),
      });
      expect(result).toMatchObject({step: 60, stopped: 'finished'});
      expect(result.history.map(({step}) => step)).toEqual(Array.from({length: 60}, (_, i) => i + 1));
      expect(result.history[0]!.loss).toBeGreaterThan(1.6);
      expect(result.loss).toBeLessThan(0.75);
      expect(result.loss).toBe(result.history.at(-1)!.loss);
      expect(result.tokensPerSecond).toBeGreaterThan(0);
      expect(seen).toHaveLength(60);
      expect(seen.filter(({events}) => events.length > 0).map(({step}) => step)).toEqual([25, 50, 60]);
      expect(seen[0]).toMatchObject({step: 1, steps: 60, validation: null});
      expect(seen[9]!.bitsPerCharacter).toBeCloseTo(seen[9]!.loss / Math.LN2, 12);
      const measured = await training.evaluate(model, DATA.slice(300), {batchSize: 4, length: 16});
      expect(result.validation).toEqual(measured);
      model.dispose();
    });
  });

  test('the same seed gives the same weights bit for bit, another seed others', async () => {
    const start = transformer();
    const run = async (seed: number) => {
      const model = copyWeights(transformer(), start);
      await training.train(model, DATA, {...QUICK, seed});
      const weights = weightsOf(model);
      model.dispose();
      return weights;
    };
    expect(await run(5)).toEqual(await run(5));
    expect(await run(6)).not.toEqual(await run(5));
    start.dispose();
  });

  test('three micro-batches of 2 windows equal one batch of 6, to rounding', async () => {
    const start = transformer(0);
    const run = async (options: {batchSize: number; accumulate: number}) => {
      const model = copyWeights(transformer(0), start);
      const {history} = await training.train(model, DATA, {...QUICK, ...options});
      const weights = weightsOf(model);
      model.dispose();
      return {
        losses: history.map(({loss}) => loss),
        norms: history.map(({gradientNorm}) => gradientNorm),
        weights,
      };
    };
    const [one, three] = [await run({batchSize: 6, accumulate: 1}), await run({batchSize: 2, accumulate: 3})];
    expect(difference(three.losses, one.losses, FLOAT32)).toBeNull();
    expect(difference(three.norms, one.norms, {rms: 1e-4, max: 1e-4})).toBeNull();
    three.weights.forEach((values, i) => {
      // Adam divides by the gradient's size: where a gradient is rounding only, so is the direction.
      expect(difference(values, one.weights[i]!, {rms: 1e-3, max: 5e-3}, 1e-4)).toBeNull();
    });
    start.dispose();
  });

  test('clipNorm changes the updates, and the norm that is reported is the one before it', async () => {
    const start = bigram();
    const run = async (clipNorm: number) => {
      const model = copyWeights(bigram(), start);
      const {history} = await training.train(model, DATA, {...QUICK, clipNorm});
      const weights = weightsOf(model);
      model.dispose();
      return {norms: history.map(({gradientNorm}) => gradientNorm), weights};
    };
    const free = await run(0);
    const norms = [...free.norms].sort((a, b) => a - b);
    // Between the smallest and the largest norm, so that it scales some steps and not others.
    const clipped = await run((norms[0]! + norms.at(-1)!) / 2);
    expect(clipped.norms[0]).toBe(free.norms[0]);
    expect(clipped.weights).not.toEqual(free.weights);
    expect((await run(1e6)).weights).toEqual(free.weights);
    start.dispose();
  });

  test('regularization penalties count in the gradient, not in the loss that is reported', async () => {
    const {regularizers} = await import('@tensorflow/tfjs-layers');
    const make = (strength: number) =>
      sequential({
        layers: [
          layers.embedding({
            inputDim: VOCAB,
            outputDim: VOCAB,
            inputShape: [null] as never,
            embeddingsRegularizer: regularizers.l2({l2: strength}) as never,
          }),
        ],
      });
    const start = make(0);
    const outcomes = [];
    for (const strength of [0, 100]) {
      const model = copyWeights(make(strength), start);
      const {loss} = await training.train(model, DATA, {...QUICK, steps: 1, warmup: 0, weightDecay: 0});
      outcomes.push({loss, weights: weightsOf(model)});
      model.dispose();
    }
    expect(outcomes[1]!.loss).toBe(outcomes[0]!.loss);
    expect(outcomes[1]!.weights).not.toEqual(outcomes[0]!.weights);
    start.dispose();
  });

  test('dropout is active: a layer that drops everything but the bias hides the input', async () => {
    const model = bigram(0.999999);
    await training.train(model, DATA, {...QUICK, steps: 30, learningRate: 0.1});
    const {loss} = await training.evaluate(model, DATA, {length: 8});
    // Only the output's bias was trained: the embedding got no gradient.
    expect(loss).toBeGreaterThan(0.9);
    model.dispose();
  });

  test.each(['loss', 'gradient'])(
    'a NaN %s stops before the update and keeps weights and checkpoint',
    async (where) => {
      const saves: number[] = [];
      let kept: Uint8Array | null = null;
      const checkpoint = {
        save: (bytes: Uint8Array) => {
          kept = bytes;
          saves.push(bytes.length);
        },
        load: () => kept,
      };
      await expectNoLeak(async () => {
        const model = bigram();
        let before: number[][] = [];
        const original = model.apply.bind(model);
        let calls = 0;
        model.apply = (inputs, kwargs) => {
          const logits = original(inputs, kwargs) as tf.Tensor;
          calls += 1;
          if (calls < 6) {
            return logits;
          }
          before = weightsOf(model);
          return where === 'loss'
            ? tf.mul(logits, Number.NaN)
            : tf.customGrad((x) => ({
                value: tf.clone(x as tf.Tensor),
                gradFunc: (dy: tf.Tensor) => tf.mul(dy, Number.POSITIVE_INFINITY),
              }))(logits);
        };
        const run = training.train(model, DATA, {...QUICK, steps: 20, every: 3, checkpoint});
        await expect(run).rejects.toThrow(
          where === 'loss'
            ? /training.train: the loss is NaN in step 6; .* those after step 5\. The checkpoint/
            : /the gradient's norm is (NaN|Infinity) in step 6/,
        );
        expect(saves).toHaveLength(1);
        expect(weightsOf(model)).toEqual(before);
        expect(before.flat().every(Number.isFinite)).toBe(true);
        model.apply = original;
        // The checkpoint is that of step 3, and usable.
        const {history} = await training.train(model, DATA, {...QUICK, steps: 4, checkpoint, resume: true});
        expect(history.map(({step}) => step)).toEqual([4]);
        model.dispose();
      });
    },
  );

  test('a NaN loss before the first checkpoint speaks of none', async () => {
    const model = bigram();
    model.setWeights(model.getWeights().map((weight) => tf.fill(weight.shape, Number.NaN)));
    const checkpoint = {save: () => undefined, load: () => null};
    await expect(training.train(model, DATA, {...QUICK, checkpoint})).rejects.toThrow(
      /the loss is NaN in step 1; .* after step 0\. A lower/,
    );
    model.dispose();
  });

  test('an abort ends after the current step, returns what was done, and saves it', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      const controller = new AbortController();
      let saved = 0;
      const result = await training.train(model, DATA, {
        ...QUICK,
        steps: 50,
        signal: controller.signal,
        checkpoint: {save: () => void saved++, load: () => null},
        onProgress: ({step}) => step === 3 && controller.abort(),
      });
      expect(result).toMatchObject({step: 3, stopped: 'aborted'});
      expect(result.history).toHaveLength(3);
      expect(saved).toBe(1);
      model.dispose();
    });
  });

  test('an abort during a long validation does not wait for its end', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      const controller = new AbortController();
      const original = model.apply.bind(model);
      let evaluated = 0;
      model.apply = (inputs, kwargs) => {
        if (!kwargs?.['training'] && ++evaluated === 2) {
          controller.abort();
        }
        return original(inputs, kwargs);
      };
      const {signal} = controller;
      const result = await training.train(model, DATA, {
        ...QUICK,
        steps: 9,
        every: 1,
        validation: 0.5,
        signal,
      });
      expect(result).toMatchObject({step: 1, stopped: 'aborted', validation: null});
      expect(evaluated).toBe(2);
      model.dispose();
    });
  });

  test('timers run while it trains: an abort from one is seen', async () => {
    const model = bigram();
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), 20);
    const result = await training.train(model, DATA, {...QUICK, steps: 1e6, signal: controller.signal});
    clearTimeout(timer);
    expect(result.stopped).toBe('aborted');
    model.dispose();
  });

  test('aborted before it begins, it does nothing and saves nothing', async () => {
    const model = bigram();
    const before = weightsOf(model);
    let saved = 0;
    const result = await training.train(model, DATA, {
      ...QUICK,
      signal: AbortSignal.abort(),
      checkpoint: {save: () => void saved++, load: () => null},
    });
    expect(result).toMatchObject({
      step: 0,
      stopped: 'aborted',
      history: [],
      loss: Number.NaN,
      tokensPerSecond: 0,
    });
    expect(weightsOf(model)).toEqual(before);
    expect(saved).toBe(0);
    model.dispose();
  });

  test('an error in onProgress ends the run and leaks nothing', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      const onProgress = () => {
        throw new Error('no more');
      };
      await expect(training.train(model, DATA, {...QUICK, onProgress})).rejects.toThrow('no more');
      model.dispose();
    });
  });

  test('training, evaluating and predicting leave no tensor behind', async () => {
    await expectNoLeak(async () => {
      const model = transformer();
      await training.train(model, DATA, {...QUICK, accumulate: 2, validation: 0.3, every: 2});
      await training.evaluate(model, DATA, {length: 16, maxWindows: 3});
      const ids = tf.zeros([1, 4], 'int32');
      tf.dispose([ids, model.predict(ids) as tf.Tensor]);
      model.dispose();
    });
  });

  test('a fixed-length model sets the length', async () => {
    const model = sequential({
      layers: [
        layers.embedding({inputDim: VOCAB, outputDim: 4, inputShape: [9]}),
        layers.dense({units: VOCAB}),
      ],
    });
    const {step} = await training.train(model, DATA, {steps: 1, batchSize: 2});
    expect(step).toBe(1);
    await expect(training.train(model, DATA, {steps: 1, length: 8})).rejects.toThrow(
      /expected length to be the model's own, 9; got 8/,
    );
    model.dispose();
  });

  describe('refuses', () => {
    let model: LayersModel;
    beforeAll(() => {
      model = bigram();
    });
    afterAll(() => {
      model.dispose();
    });
    const bad = (data: unknown, options: unknown): Promise<unknown> =>
      training.train(model, data as never, options as never);
    const cases: [string, unknown, unknown, RegExp][] = [
      ['no options', DATA, undefined, /expected options with steps/],
      ['unknown options', DATA, {steps: 1, step: 1}, /unknown option 'step'/],
      ['no steps', DATA, {}, /expected steps to be a whole number of at least 1; got undefined/],
      ['0 steps', DATA, {steps: 0}, /expected steps/],
      ['batchSize 1.5', DATA, {steps: 1, batchSize: 1.5}, /expected batchSize to be a whole number/],
      ['length 0', DATA, {steps: 1, length: 0}, /expected length/],
      [
        'a negative rate',
        DATA,
        {steps: 1, learningRate: -1},
        /expected learningRate to be a finite number above 0/,
      ],
      ['a NaN rate', DATA, {steps: 1, learningRate: Number.NaN}, /expected learningRate/],
      ['a negative warm-up', DATA, {steps: 1, warmup: -1}, /expected warmup/],
      [
        'an unknown decay',
        DATA,
        {steps: 1, decay: 'exp'},
        /expected decay to be one of 'cosine', 'linear', 'constant'/,
      ],
      ['negative weight decay', DATA, {steps: 1, weightDecay: -1}, /expected weightDecay/],
      ['a negative clipNorm', DATA, {steps: 1, clipNorm: -1}, /expected clipNorm/],
      ['accumulate 0', DATA, {steps: 1, accumulate: 0}, /expected accumulate/],
      ['every 0', DATA, {steps: 1, every: 0}, /expected every/],
      ['a fractional seed', DATA, {steps: 1, seed: 0.5}, /expected seed/],
      ['workers 0', DATA, {steps: 1, workers: 0}, /expected workers/],
      [
        'accumulate that workers cannot share',
        DATA,
        {steps: 1, workers: 2, accumulate: 3},
        /multiple of workers/,
      ],
      [
        'a signal that is none',
        DATA,
        {steps: 1, signal: true},
        /expected signal to be an AbortSignal; got true/,
      ],
      ['onProgress that is none', DATA, {steps: 1, onProgress: 1}, /expected onProgress to be a function/],
      [
        'a checkpoint that is none',
        DATA,
        {steps: 1, checkpoint: 5},
        /expected checkpoint to be a file path or an object/,
      ],
      [
        'resume without a checkpoint',
        DATA,
        {steps: 1, resume: true},
        /resume: true continues from checkpoint/,
      ],
      [
        'no data',
        undefined,
        {steps: 1},
        /expected data to be token ids or \{train, validation\}; got undefined/,
      ],
      ['text', 'hello', {steps: 1}, /expected data to be token ids/],
      ['too little data', DATA.slice(0, 8), {steps: 1, length: 8}, /at least length \+ 1 = 9 tokens.*got 8/],
      [
        'ids outside the vocabulary',
        [...DATA, 7],
        {steps: 1},
        /expected data\[400\] to be a token id in \[0, 7\)/,
      ],
      ['negative ids', [-1, ...DATA], {steps: 1}, /expected data\[0\] to be a token id/],
      ['fractional ids', [0.5, ...DATA], {steps: 1}, /expected data\[0\] to be a token id.*got 0.5/],
      ['a validation fraction of 1', DATA, {steps: 1, validation: 1}, /a fraction in \(0, 1\); got 1/],
      [
        'a fraction too small for a window',
        DATA,
        {steps: 1, length: 8, validation: 0.01},
        /splits 400 tokens into 396 and 4/,
      ],
      ['validation twice', {train: DATA, validation: DATA}, {steps: 1, validation: 0.5}, /got both/],
      ['a missing train part', {train: null}, {steps: 1}, /expected data.train to be an Int32Array/],
    ];
    test.each(cases)('%s', async (_, data, options, message) => {
      const before = tf.memory().numTensors;
      await expect(bad(data, options)).rejects.toThrow(message);
      expect(tf.memory().numTensors).toBe(before);
    });

    test('what is not a language model', async () => {
      const classes = sequential({layers: [layers.dense({units: 2, inputShape: [3]})]});
      await expect(training.train(classes, DATA, {steps: 1})).rejects.toThrow(
        /expected a model from ids \[B,T\] to logits \[B,T,V\]; got inputs \[null,3\] and outputs \[null,2\]/,
      );
      await expect(training.evaluate(classes, DATA)).rejects.toThrow(/expected a model from ids/);
      await expect(training.train({} as never, DATA, {steps: 1})).rejects.toThrow(
        /expected model to be a tf.LayersModel/,
      );
      classes.dispose();
      const gone = bigram();
      gone.dispose();
      await expect(training.train(gone, DATA, {steps: 1})).rejects.toThrow(/was disposed/);
    });
  });
});
