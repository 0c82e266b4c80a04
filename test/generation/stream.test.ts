/** A stream says at every position what predict says about the whole sequence. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {generation, layers, models} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {valuesOf} from '../helpers/numbers';

type Symbolic = tfl.SymbolicTensor;

const IDS = [3, 1, 4, 1, 5, 0, 2, 6];
const SMALL = {vocabSize: 7, dModel: 8, numLayers: 2, numHeads: 2, maxLength: 8, seed: 3} as const;

/** Logits of every position, [T][V]. */
function predictions(model: tfl.LayersModel, input: number[] | number[][]): number[][] {
  const dtype = typeof input[0] === 'number' ? 'int32' : 'float32';
  const values = valuesOf(() => model.predict(tf.tensor([input], undefined, dtype)) as tf.Tensor);
  const size = values.length / input.length;
  return input.map((_, t) => values.slice(t * size, (t + 1) * size));
}

const close = (what: unknown, got: number[], want: number[]) =>
  expect([what, difference(got, want, FLOAT32)]).toEqual([what, null]);

/** Compares prefill in pieces of these lengths, then single steps, with predict; and the bookkeeping. */
function checkPieces(model: tfl.LayersModel, input: number[] | number[][], pieces: number[]): void {
  const want = predictions(model, input);
  const stream = generation.stream(model);
  let at = 0;
  for (const piece of pieces) {
    const logits = valuesOf(() => stream.prefill(input.slice(at, at + piece)));
    at += piece;
    close({pieces, at}, logits, want[at - 1]);
    expect(stream.position).toBe(at);
  }
  for (; at < input.length; at++) {
    close(
      {pieces, step: at},
      valuesOf(() => stream.step(input[at])),
      want[at],
    );
  }
  expect(stream.position).toBe(input.length);
  stream.dispose();
}

/** A model of one input around the body. */
function modelOf(body: (x: Symbolic) => Symbolic, size = 4): tfl.LayersModel {
  const input = tfl.input({shape: [null, size]});
  return tfl.model({inputs: input, outputs: body(input)});
}
const apply = (layer: tfl.layers.Layer, x: Symbolic | Symbolic[]) => layer.apply(x) as Symbolic;
const attention = (name: string) => layers.linearAttention({name, numHeads: 2, keyDim: 2, causal: true});
const VECTORS = IDS.slice(0, 6).map((id, t) => [Math.sin(id + t), Math.cos(id * t), id / 7, 1 - t / 5]);

describeOnBackends('stream', () => {
  for (const kind of ['linear', 'softmax', 'hybrid'] as const) {
    for (const position of ['rotary', 'learned', 'sinusoidal', 'none'] as const) {
      test(`${kind} attention, position ${position}: equals predict at every position, in any pieces`, async () => {
        await expectNoLeak(() => {
          const model = models.transformer({
            ...SMALL,
            position,
            attention: kind === 'hybrid' ? ['softmax', 'linear'] : kind,
            tieEmbeddings: kind !== 'softmax',
          });
          for (const pieces of [[], [8], [3, 5], [2, 1, 3]]) {
            checkPieces(model, IDS, pieces);
          }
          model.dispose();
        });
      });
    }
  }

  test('takes ids as numbers, arrays, typed arrays and tensors', () => {
    const model = models.transformer(SMALL);
    const run = (ids: tf.TensorLike | tf.Tensor, then: tf.TensorLike | tf.Tensor) => {
      const stream = generation.stream(model);
      const values = [...valuesOf(() => stream.prefill(ids)), ...valuesOf(() => stream.step(then))];
      stream.dispose();
      return values;
    };
    const want = run([3, 1], 4);
    tf.tidy(() => {
      for (const [ids, then] of [
        [[[3, 1]], [4]],
        [Int32Array.of(3, 1), Int32Array.of(4)],
        [Uint8Array.of(3, 1), [[4]]],
        [[Int32Array.of(3, 1)], 4],
        [tf.tensor1d([3, 1], 'int32'), tf.scalar(4, 'int32')],
        [tf.tensor2d([[3, 1]], undefined, 'int32'), tf.tensor2d([[4]], undefined, 'int32')],
      ] as [tf.TensorLike, tf.TensorLike][]) {
        expect(run(ids, then)).toEqual(want);
      }
    });
    expect(run(3, 1)).toEqual(run([3], 1));
    model.dispose();
  });

  test('runs a batch: each row is what it is alone', () => {
    const model = models.transformer({...SMALL, attention: ['linear', 'softmax']});
    const rows = [IDS.slice(0, 5), IDS.slice(3, 8)];
    const stream = generation.stream(model, {batchSize: 2});
    const prefilled = valuesOf(() => stream.prefill(rows.map((row) => row.slice(0, 3))));
    const stepped = valuesOf(() => stream.step(rows.map((row) => row[3])));
    rows.forEach((row, i) => {
      const want = predictions(model, row);
      close({row: i}, prefilled.slice(7 * i, 7 * i + 7), want[2]);
      close({row: i}, stepped.slice(7 * i, 7 * i + 7), want[3]);
    });
    stream.dispose();
    model.dispose();
  });

  test('a fork goes its own way, and leaves the first where it was', async () => {
    await expectNoLeak(() => {
      const model = models.transformer({...SMALL, attention: ['softmax', 'linear']});
      const first = generation.stream(model);
      first.prefill(IDS.slice(0, 3)).dispose();
      const fork = first.fork();
      const others = [6, 6];
      const forked = others.map((id) => valuesOf(() => fork.step(id)));
      expect([first.position, fork.position]).toEqual([3, 5]);
      close(
        'first',
        valuesOf(() => first.step(IDS[3])),
        predictions(model, IDS)[3],
      );
      close('fork', forked[1], predictions(model, [...IDS.slice(0, 3), ...others])[4]);
      first.dispose();
      close(
        'after',
        valuesOf(() => fork.step(0)),
        predictions(model, [...IDS.slice(0, 3), ...others, 0])[5],
      );
      fork.dispose();
      model.dispose();
    });
  });

  test('state: constant for linear attention, growing with each token for softmax', () => {
    const sizes = (kind: 'linear' | 'softmax') => {
      const model = models.transformer({...SMALL, attention: kind});
      const stream = generation.stream(model);
      const bytes = [stream.stateBytes];
      for (const id of IDS.slice(0, 4)) {
        stream.step(id).dispose();
        bytes.push(stream.stateBytes);
      }
      stream.dispose();
      model.dispose();
      return bytes;
    };
    // Two layers of two heads of s [4,4] and z [4]; or of k [4] and v [4] per token. float32.
    expect(sizes('linear')).toEqual(Array(5).fill(2 * 2 * (16 + 4) * 4));
    expect(sizes('softmax')).toEqual([0, 1, 2, 3, 4].map((tokens) => tokens * 2 * 2 * 8 * 4));
  });

  test('holds the same number of tensors after every step, also inside a tidy', () => {
    const model = models.transformer({...SMALL, attention: ['linear', 'softmax']});
    const stream = generation.stream(model);
    stream.prefill([1]).dispose();
    const held = tf.memory().numTensors;
    for (const id of [2, 3]) {
      tf.tidy(() => {
        stream.step(id);
      });
      expect(tf.memory().numTensors).toBe(held);
    }
    close(
      'after tidies',
      valuesOf(() => stream.step(4)),
      predictions(model, [1, 2, 3, 4])[3],
    );
    stream.dispose();
    model.dispose();
  });

  test('sees new weights: a stream is no copy of the model', () => {
    const model = models.transformer({...SMALL, tieEmbeddings: false});
    const stream = generation.stream(model);
    const weights = model.getLayer('head').getWeights();
    tf.tidy(() =>
      model.getLayer('head').setWeights([tf.mul(weights[0], 0), tf.add(tf.mul(weights[1], 0), 5)]),
    );
    expect(valuesOf(() => stream.step(1))).toEqual(Array(7).fill(5));
    stream.dispose();
    model.dispose();
  });

  test('models of vectors: merges, nested models, shared layers, time-wise layers of every kind', () => {
    class Doubled extends tfl.layers.Layer {
      static className = 'DoubledForTest';
      static timewise = true;
      override call(x: tf.Tensor | tf.Tensor[]): tf.Tensor {
        return tf.mul(Array.isArray(x) ? x[0] : x, 2);
      }
    }
    const bodies: {[name: string]: (x: Symbolic) => Symbolic} = {
      'merges over two branches': (x) => {
        const a = apply(attention('a'), x);
        const b = apply(tfl.layers.dense({units: 4, activation: 'tanh'}), x);
        const merged = ['add', 'average', 'maximum', 'minimum', 'multiply'].map((name) =>
          apply((tfl.layers as never as {[name: string]: () => tfl.layers.Layer})[name](), [a, b]),
        );
        return apply(tfl.layers.concatenate(), merged);
      },
      'a nested model, applied twice': (x) => {
        const inner = modelOf((y) => apply(tfl.layers.add(), [y, apply(attention('inner'), y)]));
        return apply(inner, apply(inner, x));
      },
      'a sequential model inside a model inside a model': (x) => {
        const seq = tfl.sequential();
        seq.add(tfl.layers.dense({units: 4, inputShape: [null, 4] as never}));
        seq.add(attention('deep'));
        return apply(
          modelOf((y) => apply(seq, y)),
          x,
        );
      },
      'one attention layer used twice': (x) => {
        const shared = attention('shared');
        return apply(shared, apply(shared, x));
      },
      'two attention layers side by side, read after both': (x) => {
        const early = apply(tfl.layers.dense({units: 4}), x);
        return apply(tfl.layers.concatenate({axis: 2}), [
          apply(attention('l'), x),
          apply(attention('r'), early),
          early,
        ]);
      },
      'self attention written as [x, x]': (x) => apply(attention('self'), [x, x]),
      'no attention at all': (x) => apply(tfl.layers.dense({units: 3}), x),
      'the input itself merged in at the end': (x) => apply(tfl.layers.add(), [x, apply(attention('a'), x)]),
      'normalisation, dropout and activations': (x) =>
        [
          tfl.layers.batchNormalization(),
          attention('a'),
          tfl.layers.layerNormalization({axis: 2}),
          tfl.layers.dropout({rate: 0.5}),
          tfl.layers.gaussianNoise({stddev: 1}),
          tfl.layers.leakyReLU(),
          tfl.layers.prelu({sharedAxes: [1]}),
          tfl.layers.softmax({axis: 2}),
          tfl.layers.timeDistributed({layer: tfl.layers.dense({units: 4})}),
          tfl.layers.elu(),
          new Doubled({}),
          layers.gelu(),
          layers.seededDropout({rate: 0.5}),
          layers.positionEmbedding({kind: 'sinusoidal'}),
          attention('b'),
        ].reduce((y, layer) => apply(layer, y), x),
    };
    for (const [name, body] of Object.entries(bodies)) {
      const model = modelOf(body);
      for (const pieces of [[], [4, 2]]) {
        try {
          checkPieces(model, VECTORS, pieces);
        } catch (error) {
          throw new Error(`${name}: ${(error as Error).message}`);
        }
      }
    }
  });
});
