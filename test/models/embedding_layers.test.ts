/** The small layers that models are made of. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {layers, patches} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {copyOf} from '../helpers/models';
import {messageOf, valuesOf} from '../helpers/numbers';

const close = (got: ArrayLike<number>, want: ArrayLike<number>) =>
  expect(difference(got, want, FLOAT32)).toBeNull();

describeOnBackends('tied embedding', () => {
  let undo: () => void;
  beforeAll(() => {
    undo = patches.wasmTraining();
  });
  afterAll(() => undo());

  const table = [
    [1, 2],
    [3, 4],
    [5, 6],
  ];
  const make = () => {
    const layer = layers.tiedEmbedding({inputDim: 3, outputDim: 2});
    tf.tidy(() => layer.apply(tf.zeros([1, 1], 'int32')) as tf.Tensor);
    tf.tidy(() => layer.setWeights([tf.tensor2d(table)]));
    return layer;
  };

  test('looks ids up, and multiplies activations by the same table', () => {
    const layer = make();
    close(
      valuesOf(() => layer.apply(tf.tensor2d([[2, 0]], [1, 2], 'int32')) as tf.Tensor),
      [5, 6, 1, 2],
    );
    close(
      valuesOf(() => layer.apply(tf.tensor3d([[[1, -1]]])) as tf.Tensor),
      [-1, -1, -1],
    );
    // Many rows take another way.
    const rows = Array.from({length: 12}, (_, i) => [i, 1]);
    close(
      valuesOf(() => layer.apply(tf.tensor3d([rows])) as tf.Tensor),
      rows.flatMap(([a, b]) => table.map(([x, y]) => a * x + b * y)),
    );
    layer.dispose();
  });

  test('gets the gradient of both uses', () => {
    for (const length of [2, 12]) {
      const layer = make();
      const ids = Array.from({length}, (_, i) => i % 3);
      const loss = () =>
        tf.tidy(() => {
          const x = layer.apply(tf.tensor2d([ids], [1, length], 'int32')) as tf.Tensor;
          return tf.sum(tf.square(layer.apply(x) as tf.Tensor)) as tf.Scalar;
        });
      const variable = layer.weights[0].read() as tf.Variable;
      const got = tf.tidy(() => tf.variableGrads(loss, [variable]).grads[variable.name].dataSync());
      // loss = sum over ids i and all j of (e_i . e_j)^2
      const dot = (a: number[], b: number[]) => a[0] * b[0] + a[1] * b[1];
      const want = table.map(() => [0, 0]);
      for (const i of ids) {
        for (let j = 0; j < 3; j++) {
          for (let c = 0; c < 2; c++) {
            want[i][c] += 2 * dot(table[i], table[j]) * table[j][c];
            want[j][c] += 2 * dot(table[i], table[j]) * table[i][c];
          }
        }
      }
      close(got, want.flat());
      layer.dispose();
    }
  });

  test('masks id 0 when told to, and only then', () => {
    const ids = tf.tensor2d([[0, 2]], [1, 2], 'int32');
    const [plain, masking] = [false, true].map((maskZero) =>
      layers.tiedEmbedding({inputDim: 3, outputDim: 2, maskZero}),
    );
    expect(plain.computeMask(ids)).toBeNull();
    expect(valuesOf(() => masking.computeMask(ids))).toEqual([0, 1]);
    ids.dispose();
  });
});

describeOnBackends('position embedding', () => {
  test('learned: adds the first rows of the table, whatever the length', () => {
    const layer = layers.positionEmbedding({kind: 'learned', maxLength: 3});
    tf.tidy(() => layer.apply(tf.zeros([1, 1, 2])) as tf.Tensor);
    const table = [10, 20, 30, 40, 50, 60];
    tf.tidy(() => layer.setWeights([tf.tensor2d(table, [3, 2])]));
    for (const length of [1, 2, 3]) {
      const got = valuesOf(() => layer.apply(tf.ones([1, length, 2])) as tf.Tensor);
      expect(got).toEqual(table.slice(0, 2 * length).map((x) => x + 1));
    }
    expect(messageOf(() => tf.tidy(() => layer.apply(tf.ones([1, 4, 2])) as tf.Tensor))).toBe(
      `PositionEmbedding '${layer.name}': position 3 is past maxLength (3); make the model with a larger maxLength or shorten the input.`,
    );
    expect(valuesOf(() => layer.callAt(tf.zeros([2, 1, 2]), Int32Array.of(2, 0)))).toEqual([50, 60, 10, 20]);
    layer.dispose();
  });

  test('sinusoidal: sines in even columns, cosines in odd ones, also of an odd width', () => {
    const layer = layers.positionEmbedding({kind: 'sinusoidal'});
    const got = valuesOf(() => layer.apply(tf.zeros([2, 4, 3])) as tf.Tensor);
    const row = (p: number) => [Math.sin(p), Math.cos(p), Math.sin(p / 10000 ** (2 / 3))];
    const all = [0, 1, 2, 3].flatMap(row);
    close(got, [...all, ...all]);
    close(
      valuesOf(() => layer.callAt(tf.zeros([1, 2, 3]), 7)),
      [...row(7), ...row(8)],
    );
  });
});

describeOnBackends('sequence pooling', () => {
  const x = [
    [
      [1, -5],
      [2, 7],
      [9, 3],
    ],
    [
      [4, 4],
      [5, 5],
      [6, 6],
    ],
  ];
  const pool = (pooling: 'mean' | 'max' | 'last', mask?: number[][], at = x) =>
    valuesOf(() => {
      const kwargs = mask === undefined ? {} : {mask: tf.tensor2d(mask, undefined, 'bool')};
      return layers.sequencePooling({pooling}).apply(tf.tensor3d(at), kwargs) as tf.Tensor;
    });

  test('mean, max and last of all positions', () => {
    close(pool('mean'), [4, 5 / 3, 5, 5]);
    close(pool('max'), [9, 7, 6, 6]);
    close(pool('last'), [9, 3, 6, 6]);
  });

  test('of the positions that the mask keeps; none kept gives 0; NaN under the mask has no effect', () => {
    const poisoned = x.map((row) => row.map((v) => [...v]));
    poisoned[0][2] = [Number.NaN, Number.NaN];
    const mask = [
      [1, 1, 0],
      [0, 0, 0],
    ];
    close(pool('mean', mask, poisoned), [1.5, 1, 0, 0]);
    close(pool('max', mask, poisoned), [2, 7, 0, 0]);
    close(pool('last', mask, poisoned), [2, 7, 0, 0]);
  });
});

describeOnBackends('small layers', () => {
  test('survive saving and loading inside a model', async () => {
    await expectNoLeak(async () => {
      const ids = tfl.input({shape: [null], dtype: 'int32'});
      const tied = layers.tiedEmbedding({name: 'tied', inputDim: 5, outputDim: 4, maskZero: true});
      let x = tied.apply(ids) as tfl.SymbolicTensor;
      x = layers.positionEmbedding({name: 'learned', kind: 'learned', maxLength: 6}).apply(x) as typeof x;
      x = layers.positionEmbedding({name: 'waves', kind: 'sinusoidal'}).apply(x) as typeof x;
      x = layers.gelu({name: 'gelu', approximate: 'tanh'}).apply(x) as typeof x;
      const pooled = layers.sequencePooling({name: 'pooling', pooling: 'last'}).apply(x) as typeof x;
      const model = tfl.model({inputs: ids, outputs: [tied.apply(x) as typeof x, pooled]});
      const loaded = await copyOf(model);
      expect(loaded.layers.map((layer) => layer.getConfig())).toEqual(
        model.layers.map((layer) => layer.getConfig()),
      );
      const run = (m: tfl.LayersModel) =>
        tf.tidy(() => {
          const outputs = m.predict(tf.tensor2d([[1, 4, 2, 0]], [1, 4], 'int32')) as tf.Tensor[];
          return outputs.map((y) => Array.from(y.dataSync()));
        });
      expect(run(loaded)).toEqual(run(model));
      loaded.dispose();
      model.dispose();
    });
  });

  test.each<[string, () => unknown, string]>([
    [
      'no size',
      () => layers.tiedEmbedding({inputDim: 3} as never),
      'layers.tiedEmbedding: expected outputDim to be a whole number of at least 1; got undefined.',
    ],
    [
      'nothing',
      () => layers.tiedEmbedding(undefined as never),
      'layers.tiedEmbedding: expected args to be an object; got null.',
    ],
    [
      'an unknown kind of position',
      () => layers.positionEmbedding({kind: 'rotary' as never}),
      "layers.positionEmbedding: expected kind to be one of 'learned', 'sinusoidal'; got 'rotary'.",
    ],
    [
      'learned positions without a number of them',
      () => layers.positionEmbedding({kind: 'learned'}),
      "layers.positionEmbedding: expected maxLength, which kind 'learned' needs; got none.",
    ],
    [
      'an unknown pooling',
      () => layers.sequencePooling({pooling: 'sum' as never}),
      "layers.sequencePooling: expected pooling to be one of 'mean', 'max', 'last'; got 'sum'.",
    ],
    [
      'an unknown gelu',
      () => layers.gelu({approximate: 'erf' as never}),
      "layers.gelu: expected approximate to be one of 'none', 'tanh'; got 'erf'.",
    ],
    [
      'activations of another size',
      () => {
        const layer = layers.tiedEmbedding({name: 'tied', inputDim: 3, outputDim: 2});
        return layer.computeOutputShape([1, 4, 5]);
      },
      "TiedEmbedding 'tied': expected ids [B,T] or activations [B,T,2]; got an input of shape [1,4,5].",
    ],
  ])('refuse %s', (_, f, message) => {
    expect(messageOf(f)).toBe(message);
  });
});
