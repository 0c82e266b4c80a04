/** Token by token, in pieces, and at once: one answer. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {disposeState, type FeatureMap, type FeatureMapContext, layers} from '../../index';
import type {StreamState} from '../../layers/streaming';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {values} from '../helpers/layers';

const SIZES = {numHeads: 2, keyDim: 4, valueDim: 3, causal: true, seed: 5};
/** exp(gain x) with a gain per head, whatever the layout. */
const scaled: FeatureMap = {
  name: 'scaled',
  dim: (r) => r,
  weights: (_, heads) => [
    {name: 'gain', shape: [heads], initializer: Float32Array.of(1, 2), trainable: true},
  ],
  queries: scale,
  keys: scale,
  getConfig: () => ({}),
};
function scale(x: tf.Tensor, {headAxis, weights}: FeatureMapContext = {}): tf.Tensor {
  return tf.exp(tf.mul(x, tf.reshape(weights!['gain'], headAxis === 1 ? [-1, 1, 1] : [-1, 1])));
}
const LAYERS = {
  'linear attention': () => layers.linearAttention(SIZES),
  'linear, not normalised': () => layers.linearAttention({...SIZES, normalize: false, featureMap: 'relu'}),
  'linear, relu, denominators of 0': () => layers.linearAttention({...SIZES, featureMap: 'relu'}),
  "linear, rotary 'input'": () => layers.linearAttention({...SIZES, rotary: 'input'}),
  "linear, rotary 'input', interleaved": () =>
    layers.linearAttention({...SIZES, rotary: 'input', rotaryPairing: 'interleaved', rotaryBase: 100}),
  "linear, rotary 'numerator'": () => layers.linearAttention({...SIZES, rotary: 'numerator'}),
  "linear, rotary 'numerator', interleaved": () =>
    layers.linearAttention({...SIZES, rotary: 'numerator', rotaryPairing: 'interleaved'}),
  "linear, rotary 'numerator', not normalised": () =>
    layers.linearAttention({...SIZES, rotary: 'numerator', normalize: false}),
  'linear, a map with weights': () => layers.linearAttention({...SIZES, featureMap: scaled}),
  'softmax attention': () => layers.softmaxAttention(SIZES),
  "softmax, rotary 'input', interleaved": () =>
    layers.softmaxAttention({...SIZES, rotary: 'input', rotaryPairing: 'interleaved'}),
};
type Attention = ReturnType<(typeof LAYERS)[keyof typeof LAYERS]>;

const near = (got: ArrayLike<number>, want: ArrayLike<number>) =>
  expect(difference(got, want, FLOAT32)).toBeNull();
const part = (x: tf.Tensor, from: number, size: number) =>
  tf.slice(x, [0, from, 0].slice(0, x.rank), [-1, size, -1].slice(0, x.rank));
const numbers = (state: StreamState) =>
  Object.entries(state).map(([name, x]) => [name, typeof x === 'number' ? x : Array.from(x.dataSync())]);

/** Runs x in pieces of the given sizes; outputs joined along the length. */
function stream(layer: Attention, x: tf.Tensor, sizes: number[], mask?: tf.Tensor, positions?: Int32Array[]) {
  let state = layer.streamState(x.shape[0]);
  let at = 0;
  const outputs = sizes.map((size, i) => {
    const context = {positions: positions?.[i] ?? at, ...(mask && {mask: part(mask, at, size)})};
    const result = layer.streamCall(part(x, at, size), state, context);
    disposeState(state);
    state = result.state;
    at += size;
    return result.output;
  });
  disposeState(state);
  return tf.concat(outputs, 1);
}

describe.each(Object.entries(LAYERS))('streaming: %s', (_, make) => {
  describeOnBackends('', () => {
    test.each([[[1, 1, 1, 1, 1, 1, 1]], [[3, 1, 3]], [[1, 6]], [[7]]])(
      'in pieces of %j equals the whole',
      (sizes) => {
        const layer = make();
        const x = values([2, 7, 6], 1);
        const want = (layer.apply(x) as tf.Tensor).dataSync();
        near(stream(layer, x, sizes).dataSync(), want);
      },
    );

    test('rows padded on the left or right, with positions of their own, equal the rows alone', () => {
      const layer = make();
      const [a, b] = [values([1, 5, 6], 1), values([1, 6, 6], 2)];
      const pad = (n: number) => tf.fill([1, n, 6], Number.NaN);
      const x = tf.concat([tf.concat([pad(2), a], 1), tf.concat([b, pad(1)], 1)], 0);
      const mask = tf.tensor2d([0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0], [2, 7], 'bool');
      const wantA = (layer.apply(a) as tf.Tensor).dataSync();
      const wantB = (layer.apply(b) as tf.Tensor).dataSync();
      const places = [
        [0, 0, 0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4, 5, 6],
      ];
      for (const sizes of [[7], [3, 4], [1, 1, 1, 1, 1, 1, 1]]) {
        let at = 0;
        const positions = sizes.map((size) => {
          const slice = Int32Array.from(places.flatMap((row) => row.slice(at, at + size)));
          at += size;
          return slice;
        });
        const got = stream(layer, x, sizes, mask, positions);
        near(tf.slice(got, [0, 2, 0], [1, 5, -1]).dataSync(), wantA);
        near(tf.slice(got, [1, 0, 0], [1, 6, -1]).dataSync(), wantB);
      }
    });

    test('a state is a value: two continuations of one state do not disturb each other or it', () => {
      const layer = make();
      const x = values([2, 4, 6], 1);
      layer.apply(x);
      const start = layer.streamState(2);
      const {state} = layer.streamCall(part(x, 0, 3), start, {positions: 0});
      const before = numbers(state);
      const step = () => layer.streamCall(part(x, 3, 1), state, {positions: 3});
      const [one, two] = [step(), step()];
      expect(two.output.dataSync()).toEqual(one.output.dataSync());
      expect(numbers(two.state)).toEqual(numbers(one.state));
      disposeState(one.state);
      disposeState(start);
      expect(numbers(state)).toEqual(before);
      expect(numbers(two.state)).not.toEqual(before);
    });

    test('no tensor is left behind', async () => {
      const layer = make();
      const x = values([2, 4, 6], 1);
      const mask = tf.tensor2d([1, 1, 0, 1, 0, 1, 1, 1], [2, 4]);
      tf.dispose(layer.apply(x) as tf.Tensor);
      await expectNoLeak(() => {
        const start = layer.streamState(2);
        const first = layer.streamCall(x, start, {positions: 0, mask});
        const next = part(x, 0, 1);
        const second = layer.streamCall(next, first.state, {positions: Int32Array.of(3, 3)});
        for (const state of [start, first.state, second.state]) disposeState(state);
        tf.dispose([first.output, second.output, next]);
      });
    });
  });
});

describeOnBackends('streaming', () => {
  test('a masked token leaves a linear state as it was, bit for bit', () => {
    for (const make of [LAYERS['linear attention'], LAYERS["linear, rotary 'numerator'"]]) {
      const layer = make();
      const x = values([2, 4, 6], 1);
      layer.apply(x);
      const {state} = layer.streamCall(x, layer.streamState(2), {positions: 0});
      for (const size of [1, 3]) {
        const next = layer.streamCall(part(x, 0, size), state, {positions: 4, mask: tf.zeros([2, size])});
        expect(numbers(next.state)).toEqual(numbers(state));
      }
    }
  });

  test('a layer that cannot stream says why', () => {
    const causal = layers.linearAttention({...SIZES, name: 'attention'});
    expect(causal.canStream()).toBe(
      "LinearAttention 'attention' has no weights yet; apply it to an input first.",
    );
    const x = tfl.input({shape: [null, 6]});
    causal.apply([x, x, x]);
    expect(causal.canStream()).toBeNull();
    causal.apply([x, tfl.input({shape: [null, 6]})]);
    expect(causal.canStream()).toBe(
      "LinearAttention 'attention' has several inputs: only attention of one sequence to itself can run token by token.",
    );
    const whole = layers.softmaxAttention({...SIZES, causal: false, name: 'whole'});
    const reason = "SoftmaxAttention 'whole' is not causal: its outputs depend on later tokens.";
    expect(whole.canStream()).toBe(reason);
    expect(() => whole.streamState(1)).toThrow(reason);
  });
});
