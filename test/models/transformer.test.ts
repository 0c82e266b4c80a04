import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {featureMaps, generation, models, patches, training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {copyOf} from '../helpers/models';
import {messageOf, valuesOf} from '../helpers/numbers';

type Options = Parameters<typeof models.transformer>[0];

const SMALL = {vocabSize: 7, dModel: 8, numLayers: 2, numHeads: 2} as const;
const IDS = [[1, 5, 2, 6, 0]];

const predict = (model: tfl.LayersModel, x: number[][] | number[][][]) =>
  valuesOf(() => {
    const isIds = !Array.isArray(x[0][0]);
    return model.predict(tf.tensor(x, undefined, isIds ? 'int32' : 'float32')) as tf.Tensor;
  });
const weightsOf = (model: tfl.LayersModel) =>
  model.weights.map((weight) => [weight.originalName, Array.from(weight.read().dataSync())]);

describeOnBackends('transformer', () => {
  let undo: () => void;
  beforeAll(() => {
    undo = patches.wasmTraining();
  });
  afterAll(() => undo());

  test('names its layers and weights readably, and has the sizes asked for', () => {
    const model = models.transformer({...SMALL, numLayers: 1, ffnDim: 12, tieEmbeddings: false, seed: 1});
    expect(model.weights.map((weight) => [weight.originalName, weight.shape])).toEqual([
      ['token_embedding/embeddings', [7, 8]],
      ['block_0_attention_norm/gamma', [8]],
      ['block_0_attention_norm/beta', [8]],
      ['block_0_attention/query_kernel', [8, 2, 4]],
      ['block_0_attention/query_bias', [2, 4]],
      ['block_0_attention/key_kernel', [8, 2, 4]],
      ['block_0_attention/key_bias', [2, 4]],
      ['block_0_attention/value_kernel', [8, 2, 4]],
      ['block_0_attention/value_bias', [2, 4]],
      ['block_0_attention/output_kernel', [2, 4, 8]],
      ['block_0_attention/output_bias', [8]],
      ['block_0_ffn_norm/gamma', [8]],
      ['block_0_ffn_norm/beta', [8]],
      ['block_0_ffn_in/kernel', [8, 12]],
      ['block_0_ffn_in/bias', [12]],
      ['block_0_ffn_out/kernel', [12, 8]],
      ['block_0_ffn_out/bias', [8]],
      ['final_norm/gamma', [8]],
      ['final_norm/beta', [8]],
      ['head/kernel', [8, 7]],
      ['head/bias', [7]],
    ]);
    model.dispose();
  });

  test('tied: one table less, no head of its own', () => {
    const [tied, untied] = [true, false].map((tieEmbeddings) =>
      models.transformer({...SMALL, tieEmbeddings}),
    );
    expect(untied.countParams() - tied.countParams()).toBe(8 * 7 + 7);
    expect(tied.weights.filter((weight) => weight.shape.includes(7))).toHaveLength(1);
    tied.dispose();
    untied.dispose();
  });

  test.each<[string, Options, number[]]>([
    ['lm, tied', SMALL, [1, 5, 7]],
    ['lm, untied', {...SMALL, tieEmbeddings: false}, [1, 5, 7]],
    [
      'lm, softmax, sinusoidal, tanh gelu',
      {...SMALL, attention: 'softmax', position: 'sinusoidal', activation: 'geluTanh'},
      [1, 5, 7],
    ],
    [
      'lm, hybrid, learned, relu',
      {...SMALL, attention: ['linear', 'softmax'], position: 'learned', maxLength: 5, activation: 'relu'},
      [1, 5, 7],
    ],
    ['classifier', {...SMALL, head: 'classifier', numClasses: 3, causal: false, position: 'none'}, [1, 3]],
    ['no head', {...SMALL, head: 'none', featureMap: 'relu'}, [1, 5, 8]],
    ['a feature map object', {...SMALL, featureMap: featureMaps.squaredRelu()}, [1, 5, 7]],
  ])(
    '%s: output shape, no leak, the same after saving and loading, bit for bit',
    async (_, options, shape) => {
      await expectNoLeak(async () => {
        const model = models.transformer(options);
        const output = tf.tidy(() => model.predict(tf.tensor2d(IDS, undefined, 'int32')) as tf.Tensor);
        expect(output.shape).toEqual(shape);
        const copy = await copyOf(model);
        expect(weightsOf(copy)).toEqual(weightsOf(model));
        expect(predict(copy, IDS)).toEqual(Array.from(output.dataSync()));
        output.dispose();
        copy.dispose();
        model.dispose();
      });
    },
  );

  test('vectors as input: projected, or classified', () => {
    const vectors = [
      [
        [1, 0, -1],
        [0.5, 2, 1],
      ],
    ];
    const body = models.transformer({inputDim: 3, dModel: 8, numLayers: 1, numHeads: 2});
    expect(body.outputShape).toEqual([null, null, 8]);
    expect(predict(body, vectors)).toHaveLength(16);
    const classifier = models.transformer({inputDim: 3, dModel: 8, numLayers: 1, numHeads: 2, numClasses: 4});
    expect(predict(classifier, vectors)).toHaveLength(4);
    body.dispose();
    classifier.dispose();
  });

  test('the same seed gives the same weights, another seed others; no two kernels are equal', () => {
    const [a, b, c] = [3, 3, 4].map((seed) => models.transformer({...SMALL, tieEmbeddings: false, seed}));
    expect(weightsOf(b)).toEqual(weightsOf(a));
    const kernels = (model: tfl.LayersModel) =>
      weightsOf(model).filter(([name]) => /kernel|embeddings/.test(name as string));
    const all = [...kernels(a), ...kernels(c)].map(([, values]) => (values as number[])[0]);
    expect(new Set(all).size).toBe(all.length);
    for (const model of [a, b, c]) {
      model.dispose();
    }
  });

  test('nothing is drawn from Math.random', () => {
    const spy = jest.spyOn(Math, 'random');
    const options = {...SMALL, dropout: 0.1, position: 'learned', maxLength: 9} as const;
    const model = models.transformer(options);
    tf.tidy(() => model.apply(tf.tensor2d(IDS, undefined, 'int32'), {training: true}) as tf.Tensor);
    expect(spy).not.toHaveBeenCalled();
    spy.mockRestore();
    model.dispose();
  });

  test('causal: a later token changes no earlier logit; not causal: it does', () => {
    for (const attention of ['linear', 'softmax'] as const) {
      for (const causal of [true, false]) {
        const model = models.transformer({...SMALL, attention, causal, seed: 5});
        const [before, after] = [6, 3].map((last) => predict(model, [[1, 2, 3, last]]).slice(0, 3 * 7));
        expect([attention, causal, difference(after, before, {rms: 0, max: 0}, 0) === null]).toEqual([
          attention,
          causal,
          causal,
        ]);
        model.dispose();
      }
    }
  });

  test('dropout acts while training only', () => {
    const model = models.transformer({...SMALL, dropout: 0.5, seed: 2});
    const run = (training: boolean) =>
      valuesOf(() => model.apply(tf.tensor2d(IDS, undefined, 'int32'), {training}) as tf.Tensor);
    expect(run(false)).toEqual(predict(model, IDS));
    expect(run(true)).not.toEqual(run(true));
    model.dispose();
  });

  test('a classifier does not see padding (maskZero), whatever the pooling and attention', () => {
    for (const pooling of ['mean', 'max', 'last'] as const) {
      const attention = ['linear', 'softmax'] as const;
      const model = models.transformer({
        ...SMALL,
        attention,
        causal: false,
        position: 'learned',
        maxLength: 9,
        numClasses: 3,
        pooling,
        maskZero: true,
        seed: 1,
      });
      const plain = predict(model, [[4, 2, 6]]);
      const padded = predict(model, [[4, 2, 6, 0, 0]]);
      expect([pooling, difference(padded, plain, FLOAT32)]).toEqual([pooling, null]);
      model.dispose();
    }
  });

  test("learns by tfjs's own fit, compiled for int32 targets, without a leak", async () => {
    await expectNoLeak(async () => {
      const model = models.transformer({...SMALL, seed: 1});
      const optimizer = tf.train.adam(0.03);
      training.compile(model, {optimizer});
      // The task: count on.
      const x = tf.tensor2d([IDS[0], [3, 0, 4, 1, 2]], undefined, 'int32');
      const y = tf.tidy(() => tf.mod(tf.add(x, tf.scalar(1, 'int32')), tf.scalar(7, 'int32')));
      const {history} = await model.fit(x, y, {epochs: 12, batchSize: 2, shuffle: false, verbose: 0});
      const loss = history.loss as number[];
      expect(loss[0]).toBeGreaterThan(1.5);
      expect(loss[11]).toBeLessThan(0.5 * loss[0]);
      tf.dispose([x, y]);
      optimizer.dispose();
      model.dispose();
    });
  });

  test('streams of a trained model say what predict says', () => {
    const model = models.transformer({...SMALL, seed: 8});
    const stream = generation.stream(model);
    const got = valuesOf(() => stream.prefill(IDS));
    expect(difference(got, predict(model, IDS).slice(-7), FLOAT32)).toBeNull();
    stream.dispose();
    model.dispose();
  });

  test.each<[string, object | undefined, string]>([
    ['nothing', undefined, 'expected options to be an object; got null.'],
    ['a typo', {...SMALL, numHead: 2}, /^unknown option 'numHead'; expected 'vocabSize', /],
    [
      'neither ids nor vectors',
      {...SMALL, vocabSize: undefined},
      'expected either vocabSize (ids) or inputDim (vectors); got neither.',
    ],
    [
      'both ids and vectors',
      {...SMALL, inputDim: 3},
      'expected either vocabSize (ids) or inputDim (vectors); got both.',
    ],
    [
      'a missing size',
      {...SMALL, dModel: undefined},
      'expected dModel to be a whole number of at least 1; got undefined.',
    ],
    [
      'a broken size',
      {...SMALL, ffnDim: 1.5},
      'expected ffnDim to be a whole number of at least 1; got 1.5.',
    ],
    ['no layers', {...SMALL, numLayers: 0}, 'expected numLayers to be a whole number of at least 1; got 0.'],
    [
      'heads that do not divide',
      {...SMALL, numHeads: 3},
      'expected dModel to be a multiple of numHeads (3); got 8.',
    ],
    [
      'odd heads for rotary',
      {...SMALL, numHeads: 8},
      "expected dModel / numHeads to be even with position 'rotary'; got 1.",
    ],
    [
      'learned positions without maxLength',
      {...SMALL, position: 'learned'},
      "expected maxLength, which position 'learned' needs; got none.",
    ],
    [
      'an unknown activation',
      {...SMALL, activation: 'swish'},
      "expected activation to be one of 'gelu', 'geluTanh', 'relu'; got 'swish'.",
    ],
    [
      'an unknown position',
      {...SMALL, position: 'alibi'},
      "expected position to be one of 'rotary', 'learned', 'sinusoidal', 'none'; got 'alibi'.",
    ],
    [
      'an unknown attention',
      {...SMALL, attention: 'flash'},
      "expected attention to be one of 'linear', 'softmax'; got 'flash'.",
    ],
    [
      'an unknown attention in a list',
      {...SMALL, attention: ['linear', 1]},
      "expected attention[1] to be one of 'linear', 'softmax'; got 1.",
    ],
    [
      'too few attentions',
      {...SMALL, attention: ['linear']},
      'expected attention to have one entry per layer (2); got 1.',
    ],
    [
      'a feature map without use',
      {...SMALL, attention: 'softmax', featureMap: 'elu'},
      "featureMap is for linear attention layers; every layer's attention is 'softmax'.",
    ],
    ['a dropout of 1', {...SMALL, dropout: 1}, 'expected dropout to be a number in [0, 1); got 1.'],
    [
      'an epsilon of 0',
      {...SMALL, layerNormEpsilon: 0},
      'expected layerNormEpsilon to be a finite number above 0; got 0.',
    ],
    [
      'an unknown head',
      {...SMALL, head: 'regression'},
      "expected head to be one of 'lm', 'classifier', 'none'; got 'regression'.",
    ],
    [
      'a classifier without classes',
      {...SMALL, head: 'classifier'},
      "expected numClasses, which head 'classifier' needs; got none.",
    ],
    [
      'classes without a classifier',
      {...SMALL, head: 'lm', numClasses: 2},
      "numClasses is for head 'classifier'; the head is 'lm'.",
    ],
    [
      'pooling without a classifier',
      {...SMALL, pooling: 'mean'},
      "pooling is for head 'classifier'; the head is 'lm'.",
    ],
    [
      'an unknown pooling',
      {...SMALL, numClasses: 2, pooling: 'sum'},
      "expected pooling to be one of 'mean', 'max', 'last'; got 'sum'.",
    ],
    [
      'tying without lm',
      {...SMALL, head: 'none', tieEmbeddings: true},
      "tieEmbeddings is for head 'lm'; the head is 'none'.",
    ],
    [
      'lm of vectors',
      {...SMALL, vocabSize: undefined, inputDim: 3, head: 'lm'},
      "expected vocabSize, which head 'lm' needs; got inputDim.",
    ],
    [
      'padding of vectors',
      {...SMALL, vocabSize: undefined, inputDim: 3, maskZero: true},
      'maskZero is for ids (vocabSize); got inputDim.',
    ],
    [
      'a broken seed',
      {...SMALL, seed: 0.5},
      /^expected seed to be a whole number of at least -?\d+; got 0\.5\.$/,
    ],
    [
      'causal that is no boolean',
      {...SMALL, causal: 'yes'},
      "expected causal to be true or false; got 'yes'.",
    ],
  ] as [string, object | undefined, string | RegExp][] as never)(
    'refuses %s',
    async (_, options, message) => {
      await expectNoLeak(() => {
        const text = messageOf(() => models.transformer(options as Options));
        expect(text.slice(0, 20)).toBe('models.transformer: ');
        if (typeof message === 'string') {
          expect(text.slice(20)).toBe(message);
        } else {
          expect(text.slice(20)).toMatch(message as RegExp);
        }
      });
    },
  );
});
