import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {disposeState, type KVCache, kvCache, softmaxAttention, softmaxAttentionStep} from '../ops';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {messageOf, take, valuesOf} from './helpers/numbers';
import {randomNumbers} from './helpers/random_numbers';

const [B, H, N, r, d] = [2, 3, 6, 4, 5];
const SIZES = {batchSize: B, numHeads: H, maxLength: N, keyDim: r, valueDim: d};
const Q = randomNumbers(B * H * N * r, 1);
const K = randomNumbers(B * H * N * r, 2);
const V = randomNumbers(B * H * N * d, 3);

type Three = [tf.Tensor, tf.Tensor, tf.Tensor];

const whole = (): Three => [
  tf.tensor(Q, [B, H, N, r]),
  tf.tensor(K, [B, H, N, r]),
  tf.tensor(V, [B, H, N, d]),
];
/** Token t of each, [B,H,.]. */
const token = (xs: tf.Tensor[], t: number): Three =>
  xs.map((x) => tf.squeeze(tf.slice(x, [0, 0, t, 0], [B, H, 1, x.shape[3]!]), [2])) as Three;

/** All tokens one by one from an empty cache; output [B,H,N,d]. `masks[t]` is [B]. */
function stepAll(inputs: tf.Tensor[], masks?: number[][]): tf.Tensor {
  return tf.tidy(() => {
    let cache = kvCache(SIZES);
    const outputs: tf.Tensor[] = [];
    for (let t = 0; t < N; t++) {
      const result = softmaxAttentionStep(...token(inputs, t), cache, masks && {mask: masks[t]});
      outputs.push(result.output);
      cache = result.cache;
    }
    return tf.stack(outputs, 2);
  });
}

/** [N][B] for the steps, from rows [B][N]. */
const perToken = (rows: number[][]): number[][] => rows[0].map((_, t) => rows.map((row) => row[t]));

describeOnBackends('softmaxAttentionStep', () => {
  test('steps give the outputs and gradients of the whole causal sequence', () => {
    const dy = randomNumbers(B * H * N * d, 4);
    const run = (f: (...inputs: Three) => tf.Tensor) =>
      tf.tidy(() => {
        const inputs = whole();
        const loss = (...xs: tf.Tensor[]) => tf.sum(tf.mul(f(...(xs as Three)), tf.tensor(dy, [B, H, N, d])));
        return [f(...inputs), ...tf.grads(loss)(inputs)].map((x) => Array.from(x.dataSync()));
      });
    const want = run((q, k, v) => softmaxAttention(q, k, v, {causal: true}));
    const got = run((...inputs) => stepAll(inputs));
    expect(got.map((values, i) => difference(values, want[i], FLOAT32))).toEqual([null, null, null, null]);
  });

  test('masked steps give the outputs of the whole masked sequence', () => {
    const rows = [
      [0, 0, 1, 1, 0, 1],
      [0, 1, 1, 1, 0, 0],
    ];
    const want = valuesOf(() => softmaxAttention(...whole(), {causal: true, mask: rows}));
    const got = valuesOf(() => stepAll(whole(), perToken(rows)));
    expect(difference(got, want, FLOAT32)).toBeNull();
  });

  test('a masked step adds nothing, whatever its key and value hold', () => {
    tf.tidy(() => {
      const inputs = whole();
      const first = softmaxAttentionStep(...token(inputs, 0), kvCache(SIZES)).cache;
      const nan = [tf.fill([B, H, r], Number.NaN), tf.fill([B, H, d], Number.NaN)] as const;
      for (const mask of [[0, 0], tf.tensor([0, 0]), tf.tensor([0, 0], [2], 'bool')]) {
        const skipped = softmaxAttentionStep(token(inputs, 1)[0], ...nan, first, {mask});
        expect(skipped.cache.length).toBe(1);
        const want = softmaxAttentionStep(...token(inputs, 2), first).output.dataSync();
        expect(softmaxAttentionStep(...token(inputs, 2), skipped.cache).output.dataSync()).toEqual(want);
      }
      const half = softmaxAttentionStep(token(inputs, 1)[0], ...nan, first, {mask: [0, 0.5]});
      const after = softmaxAttentionStep(...token(inputs, 2), half.cache).output;
      const want = softmaxAttentionStep(...token(inputs, 2), first).output;
      const row = (x: tf.Tensor) => Array.from(x.dataSync()).slice(0, H * d);
      expect(difference(row(after), row(want), FLOAT32)).toBeNull();
      expect(
        Array.from(after.dataSync())
          .slice(H * d)
          .every(Number.isNaN),
      ).toBe(true);
    });
  });

  test('a masked first step has output 0', () => {
    tf.tidy(() => {
      const cache = kvCache(SIZES);
      const {output} = softmaxAttentionStep(...token(whole(), 0), cache, {mask: [0, 0]});
      expect(output.shape).toEqual([B, H, d]);
      expect(output.dataSync().every((x) => x === 0)).toBe(true);
      const one = softmaxAttentionStep(...token(whole(), 0), cache, {mask: [1, 0]}).output.dataSync();
      expect(one.subarray(H * d).every((x) => x === 0)).toBe(true);
      expect(one[0]).toBeCloseTo(V[0], 5);
    });
  });

  test('a cache is a value: the old one keeps its values, stays usable and can be forked', () => {
    const inputs = whole();
    const at = (t: number) => tf.tidy(() => token(inputs, t));
    const tokens = [0, 1, 2].map(at);
    const empty = kvCache(SIZES);
    const one = softmaxAttentionStep(...tokens[0], empty);
    const held = [one.cache.k, one.cache.v].map((x) => Array.from(x.dataSync()));
    const left = softmaxAttentionStep(...tokens[1], one.cache);
    const right = softmaxAttentionStep(...tokens[2], one.cache);
    expect([one.cache.k, one.cache.v].map((x) => Array.from(x.dataSync()))).toEqual(held);
    expect([empty.length, one.cache.length, left.cache.length, right.cache.length]).toEqual([0, 1, 2, 2]);
    const again = softmaxAttentionStep(...tokens[1], one.cache);
    expect(again.output.dataSync()).toEqual(left.output.dataSync());
    disposeState(one.cache);
    const further = softmaxAttentionStep(...tokens[2], left.cache);
    const want = tf.tidy(() => token([softmaxAttention(...whole(), {causal: true})], 2)[0].dataSync());
    expect(difference(further.output.dataSync(), want, FLOAT32)).toBeNull();
    for (const {output, cache} of [left, right, again, further]) {
      output.dispose();
      disposeState(cache);
    }
    disposeState(empty);
    tf.dispose([one.output, tokens, inputs]);
  });

  test('past maxLength there is an error that says so, and the cache stays usable', () => {
    const cache = kvCache({...SIZES, maxLength: 1});
    const full = tf.tidy(() => softmaxAttentionStep(...token(whole(), 0), cache) as Returned);
    const before = tf.memory().numTensors;
    const more = () =>
      softmaxAttentionStep(tf.zeros([B, H, r]), tf.zeros([B, H, r]), tf.zeros([B, H, d]), full.cache);
    const message = messageOf(() => tf.tidy(() => more() as Returned));
    expect(message).toBe(
      'softmaxAttentionStep: expected at most maxLength (1) tokens in the cache; got 1 cached and 1 more. Make the cache with a larger maxLength.',
    );
    expect(tf.memory().numTensors).toBe(before);
    expect(full.cache.k.dataSync().length).toBe(B * H * r);
    full.output.dispose();
    disposeState(full.cache);
    disposeState(cache);
  });

  test('nested arrays and a scale of its own are taken', () => {
    tf.tidy(() => {
      const cache = kvCache({batchSize: 1, numHeads: 1, maxLength: 2, keyDim: 1, valueDim: 1});
      const one = softmaxAttentionStep([[[1]]], [[[1]]], [[[10]]], cache);
      const two = softmaxAttentionStep([[[1]]], [[[2]]], [[[20]]], one.cache, {scale: 3});
      const weight = 1 / (1 + Math.exp(3 - 6));
      expect(two.output.dataSync()[0]).toBeCloseTo(10 * (1 - weight) + 20 * weight, 4);
    });
  });

  test('a hundred steps leave nothing behind once their caches are disposed', async () => {
    await expectNoLeak(() => {
      let cache: KVCache = kvCache({batchSize: 1, numHeads: 2, maxLength: 100, keyDim: 3, valueDim: 3});
      for (let t = 0; t < 100; t++) {
        const x = tf.fill([1, 2, 3], t);
        const {output, cache: next} = softmaxAttentionStep(
          x,
          x,
          x,
          cache,
          t % 7 === 3 ? {mask: [t % 2]} : {},
        );
        x.dispose();
        take(output);
        disposeState(cache);
        cache = next;
      }
      disposeState(cache);
    });
  });
});

type Returned = ReturnType<typeof softmaxAttentionStep> & tf.TensorContainerObject;
