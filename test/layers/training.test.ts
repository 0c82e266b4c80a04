/** Training with tfjs's own fit: losses fall, dropout works only there, nothing leaks. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {layers} from '../../index';
import {withDropoutSeed} from '../../src/dropout';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {predict, values} from '../helpers/layers';

const KINDS = [
  ['linear', layers.linearAttention],
  ["linear, rotary 'numerator'", (args) => layers.linearAttention({...args, rotary: 'numerator'})],
  ['softmax', layers.softmaxAttention],
] as const satisfies [string, (args: Args) => tfl.layers.Layer][];
type Args = Parameters<typeof layers.softmaxAttention>[0];

describe.each(KINDS)('training a %s layer', (_, make) => {
  describeOnBackends('', () => {
    /** The running mean of the first feature: a causal average, which attention can express. */
    function data() {
      const x = values([16, 6, 3], 1);
      const count = tf.reshape(tf.range(1, 7), [1, 6, 1]);
      const y = tf.div(tf.cumsum(tf.slice(x, [0, 0, 0], [-1, -1, 1]), 1), count);
      return {x, y};
    }
    /** Attention alone: tfjs's Dense trips tfjs's own leak check on wasm, whatever stands beside it. */
    function model(args: Partial<Args> = {}) {
      const layer = make({
        numHeads: 2,
        keyDim: 4,
        outputDim: 1,
        causal: true,
        seed: 1,
        inputShape: [null, 3],
        ...args,
      });
      return tfl.sequential({layers: [layer]});
    }

    test('fit lowers the loss at least fivefold', async () => {
      const {x, y} = data();
      const m = model();
      m.compile({optimizer: tf.train.adam(0.05), loss: 'meanSquaredError'});
      const {history} = await m.fit(x, y, {epochs: 20, batchSize: 16, shuffle: false, verbose: 0});
      const losses = history['loss'] as number[];
      expect(losses.at(-1)).toBeLessThan(losses[0] / 5);
    });

    test('fit, evaluate and predict leave no tensors behind, with masks, dropout and regularizers', async () => {
      const {x, y} = data();
      const m = tfl.sequential({
        layers: [
          tfl.layers.masking({inputShape: [null, 3]}),
          make({
            numHeads: 2,
            keyDim: 4,
            outputDim: 1,
            dropout: 0.3,
            seed: 1,
            kernelRegularizer: tfl.regularizers.l2({l2: 1e-3}),
            kernelConstraint: 'maxNorm',
          }),
        ],
      });
      m.compile({optimizer: 'sgd', loss: 'meanSquaredError'});
      const run = async () => {
        await m.fit(x, y, {epochs: 2, batchSize: 8, verbose: 0});
        tf.dispose(m.evaluate(x, y, {batchSize: 8}));
        tf.dispose(m.predict(x));
      };
      await run();
      await expectNoLeak(run);
    });

    test('dropout changes training and nothing else', async () => {
      const {x, y} = data();
      const [plain, dropped] = [model(), model({dropout: 0.5})];
      expect(predict(dropped, x)).toEqual(predict(plain, x));
      for (const m of [plain, dropped]) {
        m.compile({optimizer: tf.train.sgd(0.1), loss: 'meanSquaredError'});
        await m.fit(x, y, {epochs: 1, batchSize: 16, verbose: 0});
      }
      const [a, b] = [plain, dropped].map((m) => m.getWeights()[6].dataSync());
      expect(b).not.toEqual(a);

      const layer = dropped.layers[0];
      const run = (kwargs?: object) => (layer.apply(x, kwargs) as tf.Tensor).dataSync();
      expect(run({training: true})).not.toEqual(run());
      expect(run({training: false})).toEqual(run());
      expect(run({training: true})).not.toEqual(run({training: true}));
      const seeded = () => withDropoutSeed(4, () => run({training: true}));
      expect(seeded()).toEqual(seeded());
    });

    test('one seed gives one sequence of dropout masks', () => {
      const runs = () => {
        const layer = make({numHeads: 2, keyDim: 4, dropout: 0.5, seed: 9});
        const x = values([1, 5, 3], 1);
        return [1, 2].map(() => (layer.apply(x, {training: true}) as tf.Tensor).dataSync());
      };
      expect(runs()).toEqual(runs());
    });
  });
});

describeOnBackends('dropout', () => {
  /** Values of 1, and the output projection left out. */
  function ones(layer: tfl.layers.Layer, x: tf.Tensor) {
    layer.apply(x);
    const weights = layer.getWeights();
    weights[4] = tf.zerosLike(weights[4]);
    weights[5] = tf.onesLike(weights[5]);
    weights[6] = tf.reshape(tf.eye(8), [2, 4, 8]);
    layer.setWeights(weights);
    return (layer.apply(x, {training: true}) as tf.Tensor).arraySync() as number[][][];
  }
  const args = {numHeads: 2, keyDim: 4, outputDim: 8, dropout: 0.25, seed: 3, epsilon: 0};

  test('of a linear layer acts on the elements of the attention output, before its projection', () => {
    const output = ones(layers.linearAttention(args), values([4, 50, 3], 1)).flat(2);
    const dropped = output.filter((x) => x === 0).length / output.length;
    expect(dropped).toBeGreaterThan(0.2);
    expect(dropped).toBeLessThan(0.3);
    for (const x of output) if (x !== 0) expect(x).toBeCloseTo(4 / 3, 5);
  });

  test('of a softmax layer acts on the attention weights: a whole head changes together', () => {
    const {epsilon: _, ...rest} = args;
    const rows = ones(layers.softmaxAttention(rest), values([4, 6, 3], 1)).flat();
    for (const row of rows) {
      expect(row[1]).toBe(row[0]);
      expect(row[5]).toBe(row[4]);
    }
    expect(new Set(rows.map((row) => row[0])).size).toBeGreaterThan(10);
  });
});
