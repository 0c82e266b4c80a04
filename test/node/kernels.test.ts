/**
 * @jest-environment ./test/helpers/one_realm.cjs
 */
/** What the kernels of tfjs-node promise beyond the conformance list, with the native operations and without. */
import * as tf from '@tensorflow/tfjs-core';
import {linearAttention, linearAttentionStep, linearAttentionStepInPlace, zeroState} from '../../index';
import {NODE_CHUNK} from '../../src/linear_attention/node_scan';
import {asAttrs, asInputs, LinearAttention, type LinearAttentionAttrs} from '../../src/linear_attention/spec';
import {BACKWARD, disableNative, FORWARD, STEP} from '../../src/node/native';
import {type NodeBackend, nodeBackend} from '../../src/tfjs_node';
import {describeOnBackends} from '../helpers/backends';

const backend = () => nodeBackend(tf.backend()) as NodeBackend;
const random = (shape: number[], seed: number) => tf.randomNormal(shape, 0, 1, 'float32', seed);
const inputs = (shape: number[]) =>
  [1, 2, 3].map((seed) => random(shape, seed)) as [tf.Tensor, tf.Tensor, tf.Tensor];
const rows = (x: tf.Tensor, from: number, to: number) =>
  tf.slice(x, [0, 0, from, 0], [-1, -1, to - from, -1]);

/** x with `value` in all of token n. */
function withToken(x: tf.Tensor, n: number, value: number): tf.Tensor {
  const [, heads, N, width] = x.shape as number[];
  return tf.concat([rows(x, 0, n), tf.fill([1, heads, 1, width], value), rows(x, n + 1, N)], 2);
}

describeOnBackends('tfjs-node', () => {
  describe.each([
    ['with the native operations', false, 1],
    ["in TensorFlow's own operations", true, NODE_CHUNK],
  ])('%s', (_, disabled, chunk) => {
    beforeAll(() => {
      tf.env().set('IS_TEST', true);
      disableNative(disabled);
    });
    afterAll(() => disableNative(false));

    test('a later token changes no bit of an earlier output, whatever it holds', () => {
      tf.tidy(() => {
        const N = 200;
        const x = inputs([1, 2, N, 20]);
        const before = linearAttention(...x, {causal: true}) as tf.Tensor;
        for (const t of [1, 31, 32, 33, 64, 150]) {
          for (const value of [1e6, Number.NaN, Number.POSITIVE_INFINITY]) {
            const after = linearAttention(x[0], withToken(x[1], t, value), withToken(x[2], t, value), {
              causal: true,
            }) as tf.Tensor;
            // Within a chunk, the composed form may spread what is not finite.
            const safe = Number.isFinite(value) ? t : Math.floor(t / chunk) * chunk;
            expect(rows(after, 0, safe).dataSync()).toEqual(rows(before, 0, safe).dataSync());
            expect(rows(after, t, t + 1).dataSync()).not.toEqual(rows(before, t, t + 1).dataSync());
          }
        }
      });
    });

    test('a run of 30 is the same bits each time, and those of a longer run at the same tokens', () => {
      tf.tidy(() => {
        const x = inputs([2, 3, 130, 17]);
        const run = (n: number) =>
          linearAttention(...(x.map((y) => rows(y, 0, n)) as typeof x), {causal: true}) as tf.Tensor;
        const once = run(130).dataSync();
        for (let i = 0; i < 30; i++) {
          expect(run(130).dataSync()).toEqual(once);
        }
        expect(rows(run(130), 0, 64).dataSync()).toEqual(run(64).dataSync());
      });
    });

    test('forward, backward and steps leave no native tensor behind', () => {
      const x = inputs([1, 2, 70, 9]);
      const state = zeroState({batchSize: 1, numHeads: 2, keyDim: 9, valueDim: 9});
      // TensorFlow makes a tensor of what JavaScript holds when it is first used.
      for (const y of [...x, state.s, state.z]) y.dataSync();
      const once = () =>
        tf.tidy(() => {
          const loss = (...y: tf.Tensor[]) =>
            tf.sum(
              linearAttention(y[0], y[1], y[2], {causal: true, initialState: state}) as tf.Tensor,
            ) as tf.Scalar;
          tf.valueAndGrads(loss)(x);
          const token = (y: tf.Tensor) => tf.reshape(rows(y, 3, 4), [1, 2, 9]) as tf.Tensor3D;
          linearAttentionStep(token(x[0]), token(x[1]), token(x[2]), state);
        });
      once();
      const before = [backend().binding.getNumOfTensors(), tf.memory().numTensors];
      for (let i = 0; i < 5; i++) once();
      expect([backend().binding.getNumOfTensors(), tf.memory().numTensors]).toEqual(before);
      tf.dispose([...x, state.s, state.z]);
    });

    test.each([40, 130])(
      "without a normaliser, z's gradient reaches each of %d keys of its own head",
      (N) => {
        tf.tidy(() => {
          const [q, k, v] = inputs([2, 3, N, 5]);
          const weights = random([2, 3, 5], 7);
          const loss = (key: tf.Tensor) => {
            const options = {
              causal: true,
              normalize: false,
              featureMap: 'identity',
              returnState: true,
            } as const;
            return tf.sum(tf.mul(linearAttention(q, key, v, options).state.z, weights)) as tf.Scalar;
          };
          const every = tf.tile(tf.expandDims(weights, 2), [1, 1, N, 1]);
          expect(tf.grad(loss)(k).dataSync()).toEqual(every.dataSync());
        });
      },
    );

    test('2200 tokens at once equal two runs of 1100, and so do their gradients', () => {
      tf.tidy(() => {
        const x = inputs([1, 2, 2200, 6]);
        const weights = random([1, 2, 2200, 6], 8);
        const whole = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) =>
          linearAttention(q, k, v, {causal: true}) as tf.Tensor;
        const halves = (...all: tf.Tensor[]) => {
          const [first, second] = [0, 1100].map((from) => all.map((y) => rows(y, from, from + 1100)));
          const options = {causal: true, returnState: true} as const;
          const {output, state} = linearAttention(first[0], first[1], first[2], options);
          const rest = {causal: true, initialState: state};
          return tf.concat([output, linearAttention(second[0], second[1], second[2], rest) as tf.Tensor], 2);
        };
        const [a, b] = [whole, halves].map((f) => {
          const loss = (...y: tf.Tensor[]) => tf.sum(tf.mul(f(y[0], y[1], y[2]), weights)) as tf.Scalar;
          return [f(...x), ...tf.grads(loss)(x)];
        });
        a.forEach((y, i) => {
          const error = tf.div(tf.max(tf.abs(tf.sub(y, b[i]))), tf.max(tf.abs(y))).dataSync()[0];
          expect(error).toBeLessThan(1e-5);
        });
      });
    });

    test('50 steps equal the sequence, and leave the states that they were given; in place they give the same', () => {
      tf.tidy(() => {
        const [q, k, v] = inputs([2, 3, 50, 21]);
        const whole = linearAttention(q, k, v, {causal: true, returnState: true});
        let state = zeroState({batchSize: 2, numHeads: 3, keyDim: 21, valueDim: 21});
        const moving = zeroState({batchSize: 2, numHeads: 3, keyDim: 21, valueDim: 21});
        const outputs: tf.Tensor[] = [];
        for (let t = 0; t < 50; t++) {
          const token = (y: tf.Tensor) => tf.squeeze(rows(y, t, t + 1), [2]) as tf.Tensor3D;
          const given = [state.s.dataSync(), state.z.dataSync()];
          const next = linearAttentionStep(token(q), token(k), token(v), state);
          expect([state.s.dataSync(), state.z.dataSync()]).toEqual(given);
          const inPlace = linearAttentionStepInPlace(token(q), token(k), token(v), moving);
          expect(inPlace.dataSync()).toEqual(next.output.dataSync());
          expect([moving.s.dataSync(), moving.z.dataSync()]).toEqual([
            next.state.s.dataSync(),
            next.state.z.dataSync(),
          ]);
          outputs.push(next.output);
          state = next.state as typeof state;
        }
        const error = (a: tf.Tensor, b: tf.Tensor) =>
          tf.div(tf.max(tf.abs(tf.sub(a, b))), tf.max(tf.abs(b))).dataSync()[0];
        expect(error(tf.stack(outputs, 2), whole.output)).toBeLessThan(1e-5);
        expect(error(state.s, whole.state.s as tf.Tensor)).toBeLessThan(1e-5);
        expect(error(state.z, whole.state.z as tf.Tensor)).toBeLessThan(1e-5);
      });
    });
  });

  test('each of the three is one operation of TensorFlow', () => {
    const operations = jest.spyOn(backend(), 'executeMultipleOutputs');
    tf.tidy(() => {
      const x = inputs([1, 2, 40, 8]);
      tf.valueAndGrads(
        (...y) => tf.sum(linearAttention(y[0], y[1], y[2], {causal: true}) as tf.Tensor) as tf.Scalar,
      )(x);
      const state = zeroState({batchSize: 1, numHeads: 2, keyDim: 8, valueDim: 8});
      const token = (y: tf.Tensor) => tf.reshape(rows(y, 3, 4), [1, 2, 8]) as tf.Tensor3D;
      linearAttentionStep(token(x[0]), token(x[1]), token(x[2]), state);
    });
    expect(operations.mock.calls.map(([name]) => name).filter((name) => name.startsWith('Tfla'))).toEqual([
      FORWARD,
      BACKWARD,
      STEP,
    ]);
    operations.mockRestore();
  });

  test.each([
    ['features', 0, 3],
    ['value columns', 3, 0],
  ])('a kernel that is called without %s says so', (_, r, d) => {
    tf.tidy(() => {
      const [q, v, none] = [tf.zeros([1, 1, 2, r]), tf.zeros([1, 1, 2, d]), tf.zeros([1])];
      const attrs: LinearAttentionAttrs = {
        ...{updateRule: 'linear', featureMap: 'elu', dataFormat: 'BHND', causal: true, normalize: true},
        ...{eps: 1e-6, scale: 1, hasMask: false, hasState: false},
      };
      const call = () =>
        tf
          .engine()
          .runKernel(LinearAttention, asInputs({q, k: q, v, mask: none, s: none, z: none}), asAttrs(attrs));
      expect(call).toThrow('at least one column');
    });
  });

  test.each([
    ['relu', [0, 0]],
    ['squaredRelu', [0, 0]],
    ['exp', [0, 1]],
    ['elu', [0, 1]],
  ])('%s of a key of minus infinity is 0, so that the key is left out', (featureMap, [least, middle]) => {
    tf.tidy(() => {
      const k = tf.tensor([Number.NEGATIVE_INFINITY, 0], [1, 1, 1, 2]);
      const {s} = linearAttention(tf.ones([1, 1, 1, 2]), k, tf.ones([1, 1, 1, 1]), {
        ...{featureMap, causal: true, returnState: true},
      }).state;
      expect(Array.from(s.dataSync())).toEqual([least, middle]);
    });
  });

  test('sums over 60000 tokens stay as precise as float32 allows', () => {
    tf.tidy(() => {
      const N = 60000;
      const features = tf.ones([1, 1, N, 4]);
      const v = random([1, 1, N, 4], 5);
      const output = linearAttention(features, features, v, {causal: true, featureMap: 'identity', eps: 0});
      const values = v.dataSync();
      const sum = [0, 0, 0, 0];
      values.forEach((x, i) => {
        sum[i % 4] += x;
      });
      const last = rows(output as tf.Tensor, N - 1, N).dataSync();
      const size = Math.sqrt(N) / N;
      const worst = Math.max(...sum.map((want, i) => Math.abs(last[i] - want / N)));
      expect(worst).toBeLessThan(2e-5 * size);
    });
  });
}, ['tensorflow']);
