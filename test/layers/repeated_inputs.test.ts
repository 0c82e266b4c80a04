/**
 * One tensor in several of an attention layer's parts, read by later layers too, as in a residual block: tfjs's executor
 * disposes a tensor too early that a layer takes twice.
 */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {layers} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {values} from '../helpers/layers';

type Symbolic = tfl.SymbolicTensor;
const KINDS = {LinearAttention: layers.linearAttention, SoftmaxAttention: layers.softmaxAttention};
const ARGS = {numHeads: 2, keyDim: 4, seed: 3};
/** How the same tensors may be given: h of 6 features, another one of the same shape, and a key mask. */
const CALLS: {[name: string]: <T>(h: T, other: T, mask: T) => T[]} = {
  '[h, h]': (h) => [h, h],
  '[h, h, h]': (h) => [h, h, h],
  '[h, mask]': (h, _, mask) => [h, mask],
  '[h, h, mask]': (h, _, mask) => [h, h, mask],
  '[h, h, h, mask]': (h, _, mask) => [h, h, h, mask],
  '[h, other, other, mask]': (h, other, mask) => [h, other, other, mask],
  '[h, other, h]': (h, other) => [h, other, h],
  '[h, h, other]': (h, other) => [h, h, other],
  '[other, h, h]': (h, other) => [other, h, h],
};

describe.each(Object.entries(KINDS))('%s with repeated inputs', (_, make) => {
  describeOnBackends('', () => {
    test.each(Object.entries(CALLS))(
      '%s beside a residual sum, also when it was saved and loaded',
      async (_, call) => {
        await expectNoLeak(async () => {
          const [x, mask] = [tfl.input({shape: [null, 5]}), tfl.input({shape: [null]})];
          const dense = () => tfl.layers.dense({units: 6});
          const [toH, toOther, attention] = [dense(), dense(), make(ARGS)];
          const [h, other] = [toH.apply(x) as Symbolic, toOther.apply(x) as Symbolic];
          const attended = attention.apply(call(h, other, mask)) as Symbolic;
          const outputs = tfl.layers.add().apply([h, attended, other]) as Symbolic;
          const masked = call('h', 'other', 'mask').includes('mask');
          const model = tfl.model({inputs: masked ? [x, mask] : x, outputs});
          const data = [values([2, 4, 5], 7), tf.tensor2d([1, 1, 1, 0, 1, 0, 1, 1], [2, 4])];

          // What the layer gives when it is called directly, where nothing is disposed behind anybody's back.
          const want = tf.tidy(() => {
            const [a, b] = [toH.apply(data[0]!) as tf.Tensor, toOther.apply(data[0]!) as tf.Tensor];
            const direct = attention.apply(call<tf.Tensor>(a, b, data[1]!)) as tf.Tensor;
            return tf.addN([a, direct, b]).dataSync();
          });
          const artifacts: tf.io.ModelArtifacts[] = [];
          await model.save(
            tf.io.withSaveHandler(async (saved) => {
              artifacts.push(saved);
              return {modelArtifactsInfo: {dateSaved: new Date(), modelTopologyType: 'JSON'}};
            }),
          );
          const loaded = await tfl.loadLayersModel(tf.io.fromMemory(artifacts[0]!));
          for (const each of [model, loaded]) {
            const got = each.predict(masked ? data : data[0]!) as tf.Tensor;
            expect(difference(got.dataSync(), want, FLOAT32)).toBeNull();
            got.dispose();
          }
          tf.dispose(data);
          model.dispose();
          loaded.dispose();
        });
      },
    );

    test('self attention written as [h, h] obeys the mask that h carries', async () => {
      const ids = tfl.input({shape: [null]});
      const h = tfl.layers.embedding({inputDim: 9, outputDim: 6, maskZero: true}).apply(ids) as Symbolic;
      const attended = make(ARGS).apply([h, h]) as Symbolic;
      const model = tfl.model({inputs: ids, outputs: tfl.layers.add().apply([h, attended]) as Symbolic});
      const [short, padded] = [tf.tensor2d([[3, 4]]), tf.tensor2d([[3, 4, 0, 0]])].map((x) =>
        Array.from((model.predict(x) as tf.Tensor).dataSync()),
      );
      expect(difference(padded!.slice(0, 12), short!, FLOAT32)).toBeNull();
      model.dispose();
    });
  });
});
