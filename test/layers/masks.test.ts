/** Which tokens are seen: masks that callers pass, masks that tfjs carries, masks that it only seems to carry. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {layers} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {predict, values} from '../helpers/layers';

const MAKERS = [
  ['linear', layers.linearAttention],
  ['linear, turned numerator', (args) => layers.linearAttention({...args, rotary: 'numerator'})],
  ['softmax', layers.softmaxAttention],
] as const satisfies [string, (args: Args) => tfl.layers.Layer][];
type Args = Parameters<typeof layers.softmaxAttention>[0];

const ARGS = {numHeads: 2, keyDim: 4, seed: 5};
type Symbolic = tfl.SymbolicTensor;
const on = (layer: tfl.layers.Layer, x: Symbolic | Symbolic[]) => layer.apply(x) as Symbolic;
const embedding = (maskZero: boolean) =>
  tfl.layers.embedding({
    inputDim: 9,
    outputDim: 6,
    maskZero,
    embeddingsInitializer: tfl.initializers.randomUniform({minval: -1, maxval: 1, seed: 3}),
  });
const ids = (rows: number[][]) => tf.tensor2d(rows, undefined, 'int32');
const near = (got: ArrayLike<number>, want: ArrayLike<number>) =>
  expect(difference(got, want, FLOAT32)).toBeNull();
const far = (got: ArrayLike<number>, want: ArrayLike<number>) =>
  expect(difference(got, want, FLOAT32)).not.toBeNull();
/** The first n tokens of every row of a [B,N,D] prediction. */
const head = (all: ArrayLike<number>, batch: number, length: number, n: number) => {
  const size = all.length / batch / length;
  return Array.from({length: batch}, (_, b) =>
    Array.from({length: n * size}, (_, i) => all[b * length * size + i]),
  ).flat();
};

describe.each(MAKERS)('masks of a %s layer', (_, make) => {
  describeOnBackends('', () => {
    test('one input: a mask given to apply hides tokens, NaN in them included', () => {
      const layer = make(ARGS);
      const short = values([2, 3, 6], 1);
      const long = tf.concat([short, tf.fill([2, 2, 6], Number.NaN)], 1);
      const want = (layer.apply(short) as tf.Tensor).dataSync();
      for (const mask of [
        tf.tensor2d([1, 1, 1, 0, 0, 1, 1, 1, 0, 0], [2, 5], 'bool'),
        tf.tensor2d([1, 2, 3, 0, 0, 1, 1, 1, 0, 0], [2, 5], 'int32'),
        tf.tensor2d([1, 0.5, 3, 0, 0, -1, 1, 1, 0, 0], [2, 5]),
      ]) {
        const got = (layer.apply(long, {mask}) as tf.Tensor).dataSync();
        near(head(got, 2, 5, 3), want);
      }
    });

    test('Embedding with maskZero in front: padded batches equal unpadded ones', () => {
      const model = tfl.sequential({layers: [embedding(true), make(ARGS)]});
      const got = predict(
        model,
        ids([
          [1, 2, 3, 0, 0],
          [4, 5, 6, 0, 0],
        ]),
      );
      near(
        head(got, 2, 5, 3),
        predict(
          model,
          ids([
            [1, 2, 3],
            [4, 5, 6],
          ]),
        ),
      );
    });

    test('Masking in front is honoured', () => {
      const model = tfl.sequential({layers: [tfl.layers.masking({inputShape: [null, 6]}), make(ARGS)]});
      const short = values([2, 3, 6], 1);
      const got = predict(model, tf.concat([short, tf.zeros([2, 2, 6])], 1));
      near(head(got, 2, 5, 3), predict(model, short));
    });

    test('the mask is carried through attention, residual additions and normalisation to the next layer', () => {
      const input = tfl.input({shape: [null]});
      let x = on(embedding(true), input);
      for (let block = 0; block < 3; block++) {
        const change = on(make({...ARGS, seed: block}), on(tfl.layers.layerNormalization(), x));
        x = on(tfl.layers.add(), [x, on(tfl.layers.dropout({rate: 0.1}), change)]);
      }
      const model = tfl.model({inputs: input, outputs: x});
      const got = predict(
        model,
        ids([
          [1, 2, 3, 0, 0],
          [4, 5, 6, 0, 0],
        ]),
      );
      near(
        head(got, 2, 5, 3),
        predict(
          model,
          ids([
            [1, 2, 3],
            [4, 5, 6],
          ]),
        ),
      );
    });

    test('a stale mask, handed on past a layer that drops masks, is ignored', () => {
      const build = (maskZero: boolean) =>
        tfl.sequential({
          layers: [
            embedding(maskZero),
            tfl.layers.conv1d({filters: 6, kernelSize: 1, kernelInitializer: 'ones'}),
            make(ARGS),
          ],
        });
      const x = ids([[1, 2, 3, 0, 0]]);
      expect(predict(build(true), x)).toEqual(predict(build(false), x));
    });

    test("another branch's mask is ignored", () => {
      const build = (maskZero: boolean) => {
        const [first, second] = [tfl.input({shape: [null]}), tfl.input({shape: [null, 6]})];
        const masked = on(make({...ARGS, seed: 8}), on(embedding(maskZero), first));
        return tfl.model({inputs: [first, second], outputs: [masked, on(make(ARGS), second)]});
      };
      const inputs = [ids([[1, 2, 3, 0, 0]]), values([1, 5, 6], 2)];
      const [got, want] = [true, false].map((maskZero) => build(maskZero).predict(inputs) as tf.Tensor[]);
      expect(got[1].dataSync()).toEqual(want[1].dataSync());
      far(got[0].dataSync(), want[0].dataSync());
    });

    test('a layer in two places, only one of which a mask can reach, says that it cannot tell them apart', () => {
      const [first, second] = [tfl.input({shape: [null]}), tfl.input({shape: [null, 6]})];
      const shared = make(ARGS);
      const outputs = [on(shared, on(embedding(true), first)), on(shared, second)];
      const model = tfl.model({inputs: [first, second], outputs});
      expect(() => model.predict([ids([[1, 2, 0]]), values([1, 3, 6], 2)])).toThrow(
        'the layer is applied in several places, some of which a mask can reach and some not, and tfjs does not say which of them runs; pass the mask as a further input, [x, mask].',
      );
    });

    test('several inputs: masks by position, value AND key; the query mask changes no values', () => {
      const layer = make(ARGS);
      const [query, value, key] = [values([2, 3, 6], 1), values([2, 4, 6], 2), values([2, 4, 6], 3)];
      const run = (inputs: tf.Tensor[], kwargs?: object) =>
        (layer.apply(inputs, kwargs) as tf.Tensor).dataSync();
      const mask = (...row: number[]) => tf.tensor2d([row, row], undefined, 'bool');
      const short = [query, tf.slice(value, [0, 0, 0], [2, 2, 6]), tf.slice(key, [0, 0, 0], [2, 2, 6])];
      const want = run(short);
      const all = [query, value, key];
      near(run(all, {mask: [null, mask(1, 1, 0, 1), mask(1, 1, 1, 0)]}), want);
      near(run(all, {mask: [mask(0, 1, 1), mask(1, 1, 0, 0), null]}), want);
      near(run([...all, mask(1, 1, 0, 0)]), want);
      near(run([...all, mask(1, 1, 0, 1)], {mask: [null, null, mask(1, 1, 1, 0), null]}), want);
      expect(run(all, {mask: [mask(0, 0, 1), null, null]})).toEqual(run(all));
    });

    test('several inputs: a lone mask is ignored', () => {
      const layer = make(ARGS);
      const inputs = [values([1, 4, 6], 1), values([1, 4, 6], 2)];
      const mask = tf.tensor2d([[1, 0, 0, 0]]);
      const run = (kwargs?: object) => (layer.apply(inputs, kwargs) as tf.Tensor).dataSync();
      expect(run({mask})).toEqual(run());
    });

    test.each(['bool', 'int32', 'float32'] as const)(
      'cross attention in a functional model takes its key mask as the fourth input, %s',
      (dtype) => {
        const query = tfl.input({shape: [null]});
        const [value, key, mask] = [
          tfl.input({shape: [null, 5]}),
          tfl.input({shape: [null, 7]}),
          tfl.input({shape: [null], dtype}),
        ];
        // The query's own mask must change nothing.
        const model = tfl.model({
          inputs: [query, value, key, mask],
          outputs: on(make(ARGS), [on(embedding(true), query), value, key, mask]),
        });
        const [q, v, k] = [ids([[1, 2, 0]]), values([1, 4, 5], 2), values([1, 4, 7], 3)];
        const keep = tf.tensor2d([[1, 1, 0, 0]], undefined, dtype);
        const [shortV, shortK] = [v, k].map((x) => tf.slice(x, [0, 0, 0], [1, 2, x.shape[2] as number]));
        const want = predict(model, [q, shortV, shortK, tf.ones([1, 2], dtype)]);
        near(predict(model, [q, v, k, keep]), want);
        far(predict(model, [q, v, k, tf.ones([1, 4], dtype)]), want);
      },
    );

    test('one input and a mask as the second, [x, mask]', () => {
      const layer = make(ARGS);
      const x = values([1, 4, 6], 1);
      const mask = tf.tensor2d([[0, 1, 1, 0]]);
      expect((layer.apply([x, mask]) as tf.Tensor).dataSync()).toEqual(
        (layer.apply(x, {mask}) as tf.Tensor).dataSync(),
      );
    });

    test("cross attention hands on its query's mask", () => {
      const [query, memory] = [tfl.input({shape: [null]}), tfl.input({shape: [null, 6]})];
      const cross = on(make(ARGS), [on(embedding(true), query), memory]);
      const model = tfl.model({inputs: [query, memory], outputs: on(make({...ARGS, seed: 6}), cross)});
      const m = values([1, 4, 6], 1);
      near(head(predict(model, [ids([[1, 2, 3, 0]]), m]), 1, 4, 3), predict(model, [ids([[1, 2, 3]]), m]));
    });

    test('a row whose tokens are all masked gives the output bias', () => {
      const layer = make({...ARGS, biasInitializer: tfl.initializers.constant({value: 2})});
      const output = layer.apply(values([1, 3, 6], 1), {mask: tf.zeros([1, 3])}) as tf.Tensor;
      expect(Array.from(output.dataSync())).toEqual(new Array(18).fill(2));
    });
  });
});
