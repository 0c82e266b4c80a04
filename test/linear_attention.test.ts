/** What users of linearAttention rely on, beyond the numbers of single calls (test/conformance). */
import * as tf from '@tensorflow/tfjs-core';
import fc from 'fast-check';
import {linearAttention, linearAttentionStep} from '../index';
import {CHUNK} from '../src/linear_attention/chunks';
import {composedForward} from '../src/linear_attention/composed';
import {naiveForward} from '../src/linear_attention/naive';
import {random} from '../src/random';
import {type ConformanceCase, makeCase} from './conformance/cases';
import {runCase} from './conformance/run_case';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {take, valuesOf} from './helpers/numbers';

const generator = random(11);
/** A tensor of numbers in [-1, 1). */
const made = (shape: number[], low = -1, high = 1): tf.Tensor =>
  tf.tensor(
    Float32Array.from(
      {length: shape.reduce((a, b) => a * b, 1)},
      () => low + (high - low) * generator.uniform(),
    ),
    shape,
  );
const rows = (x: tf.Tensor, from: number, to: number): tf.Tensor =>
  tf.slice(x, [0, 0, from, 0], [-1, -1, to - from, -1]);
const row = (x: tf.Tensor, n: number): tf.Tensor => tf.squeeze(rows(x, n, n + 1), [2]);
const expectClose = (got: ArrayLike<number>, want: ArrayLike<number>): void =>
  expect(difference(got, want, FLOAT32)).toBeNull();

/** q, k, v of B = 1, H = 2; the caller's. */
function tokens(N: number, r = 4, d = 3): [tf.Tensor, tf.Tensor, tf.Tensor] {
  return [made([1, 2, N, r]), made([1, 2, N, r]), made([1, 2, N, d])];
}

describeOnBackends('linearAttention', (backend) => {
  describe('gives the same however the sequence is cut', () => {
    const N = CHUNK + 5;
    test.each([1, 3, CHUNK - 1, CHUNK, CHUNK + 1])('[0,%i) and then the rest, forward', async (t) => {
      await expectNoLeak(() => {
        const [q, k, v] = tokens(N);
        const whole = linearAttention(q, k, v, {causal: true, returnState: true});
        const first = tf.tidy(() =>
          linearAttention(rows(q, 0, t), rows(k, 0, t), rows(v, 0, t), {causal: true, returnState: true}),
        );
        const second = tf.tidy(() =>
          linearAttention(rows(q, t, N), rows(k, t, N), rows(v, t, N), {
            causal: true,
            initialState: first.state,
            returnState: true,
          }),
        );
        const joined = tf.concat([first.output, second.output], 2);
        expectClose(joined.dataSync(), whole.output.dataSync());
        expectClose(second.state.s.dataSync(), whole.state.s.dataSync());
        expectClose(second.state.z.dataSync(), whole.state.z.dataSync());
        tf.dispose([q, k, v, joined]);
        for (const {output, state} of [whole, first, second]) {
          tf.dispose([output, state.s, state.z]);
        }
      });
    });

    test.each([1, 3, CHUNK - 1, CHUNK, CHUNK + 1])('[0,%i) and then the rest, gradients', async (t) => {
      await expectNoLeak(() => {
        const [q, k, v] = tokens(N);
        const weights = made([1, 2, N, 3]);
        const loss = (output: tf.Tensor) => tf.sum(tf.mul(output, weights)) as tf.Scalar;
        const whole = tf.grads((...x: tf.Tensor[]) =>
          loss(linearAttention(x[0], x[1], x[2], {causal: true})),
        )([q, k, v]);
        const cut = tf.grads((...x: tf.Tensor[]) => {
          const [a, b] = [x.map((y) => rows(y, 0, t)), x.map((y) => rows(y, t, N))];
          const first = linearAttention(a[0], a[1], a[2], {causal: true, returnState: true});
          const second = linearAttention(b[0], b[1], b[2], {causal: true, initialState: first.state});
          return loss(tf.concat([first.output, second], 2));
        })([q, k, v]);
        whole.forEach((gradient, i) => {
          expectClose(cut[i].dataSync(), gradient.dataSync());
        });
        tf.dispose([q, k, v, weights, ...whole, ...cut]);
      });
    });

    test('token by token, with a masked token and without normalising', async () => {
      await expectNoLeak(() => {
        const [q, k, v] = tokens(6);
        const mask = [1, 1, 0, 1, 1, 0];
        for (const options of [{}, {normalize: false, scale: 0.5}, {featureMap: 'relu', eps: 0.1}]) {
          const whole = linearAttention(q, k, v, {causal: true, mask: [mask], ...options});
          let state: tf.Tensor[] = [tf.zeros([1, 2, 4, 3]), tf.zeros([1, 2, 4])];
          for (let n = 0; n < 6; n++) {
            const next = tf.tidy(() =>
              linearAttentionStep(
                row(q, n),
                row(k, n),
                row(v, n),
                {s: state[0], z: state[1]},
                {mask: [mask[n]], ...options},
              ),
            );
            expectClose(
              take(next.output),
              valuesOf(() => row(whole, n)),
            );
            tf.dispose(state);
            state = [next.state.s, next.state.z];
          }
          tf.dispose([whole, state]);
        }
        tf.dispose([q, k, v]);
      });
    });

    test('gradients flow through steps as through the whole sequence', async () => {
      await expectNoLeak(() => {
        const [q, k, v] = tokens(4);
        const weights = made([1, 2, 4, 3]);
        const whole = tf.grads(
          (...x: tf.Tensor[]) =>
            tf.sum(tf.mul(linearAttention(x[0], x[1], x[2], {causal: true}), weights)) as tf.Scalar,
        )([q, k, v]);
        const stepwise = tf.grads((...x: tf.Tensor[]) => {
          let state: {s: tf.Tensor; z: tf.Tensor} = {s: tf.zeros([1, 2, 4, 3]), z: tf.zeros([1, 2, 4])};
          let loss = tf.scalar(0) as tf.Tensor;
          for (let n = 0; n < 4; n++) {
            const next = linearAttentionStep(row(x[0], n), row(x[1], n), row(x[2], n), state);
            loss = tf.add(loss, tf.sum(tf.mul(next.output, row(weights, n))));
            state = next.state;
          }
          return loss as tf.Scalar;
        })([q, k, v]);
        whole.forEach((gradient, i) => {
          expectClose(stepwise[i].dataSync(), gradient.dataSync());
        });
        tf.dispose([q, k, v, weights, ...whole, ...stepwise]);
      });
    });
  });

  test('a state is a value: a step leaves it, and two continuations of one state do not meet', async () => {
    await expectNoLeak(() => {
      const state = {s: made([1, 2, 4, 3]), z: made([1, 2, 4], 0.5, 1)};
      const before = [state.s.dataSync().slice(), state.z.dataSync().slice()];
      const [a, b] = [0, 1].map(() => [made([1, 2, 4]), made([1, 2, 4]), made([1, 2, 3])]);
      const step = (x: tf.Tensor[]) => linearAttentionStep(x[0], x[1], x[2], state);
      const first = step(a);
      const other = step(b);
      const again = step(a);
      expect(state.s.dataSync()).toEqual(before[0]);
      expect(state.z.dataSync()).toEqual(before[1]);
      expect(again.output.dataSync()).toEqual(first.output.dataSync());
      expect(again.state.s.dataSync()).toEqual(first.state.s.dataSync());
      expect(other.state.s.dataSync()).not.toEqual(first.state.s.dataSync());
      for (const x of [first, other, again]) {
        tf.dispose([x.output, x.state.s, x.state.z]);
      }
      tf.dispose([state.s, state.z, ...a, ...b]);
    });
  });

  test('a masked step returns the state with its values unchanged, NaN in k and v or not', () => {
    tf.tidy(() => {
      const state = {s: made([2, 1, 4, 3]), z: made([2, 1, 4], 0.5, 1)};
      const bad = tf.fill([2, 1, 4], Number.NaN);
      const next = linearAttentionStep(made([2, 1, 4]), bad, tf.fill([2, 1, 3], Number.NaN), state, {
        mask: [false, false],
      });
      expect(next.state.s.dataSync()).toEqual(state.s.dataSync());
      expect(next.state.z.dataSync()).toEqual(state.z.dataSync());
      expect(next.output.dataSync().every(Number.isFinite)).toBe(true);
    });
  });

  test('an example does not depend on its batch mates, bit for bit', () => {
    tf.tidy(() => {
      const [q, k, v] = [made([3, 2, 37, 5]), made([3, 2, 37, 5]), made([3, 2, 37, 3])];
      for (const causal of [true, false]) {
        const all = linearAttention(q, k, v, {causal});
        for (let b = 0; b < 3; b++) {
          const one = (x: tf.Tensor) => tf.slice(x, [b, 0, 0, 0], [1, -1, -1, -1]);
          const alone = linearAttention(one(q), one(k), one(v), {causal});
          expect(alone.dataSync()).toEqual(one(all).dataSync());
        }
      }
    });
  });

  test.each([0, 1, 30, CHUNK, CHUNK + 7])(
    'changing the tokens from %i on leaves earlier outputs as they were, bit for bit',
    (t) => {
      tf.tidy(() => {
        const N = 2 * CHUNK + 9;
        const inputs = tokens(N);
        const before = linearAttention(...inputs, {causal: true});
        const late = tf.tensor(
          Float32Array.from({length: N}, (_, n) => (n >= t ? 1 : 0)),
          [1, 1, N, 1],
        );
        const changed = inputs.map((x) => tf.add(x, tf.mul(late, 3))) as typeof inputs;
        const after = linearAttention(...changed, {causal: true});
        expect(rows(after, 0, t).dataSync()).toEqual(rows(before, 0, t).dataSync());
        expect(rows(after, t, N).dataSync()).not.toEqual(rows(before, t, N).dataSync());
      });
    },
  );

  test.each([Number.NaN, Number.POSITIVE_INFINITY])(
    '%d in a token does not reach earlier outputs, and is not swallowed by later ones',
    (bad) => {
      tf.tidy(() => {
        const N = 2 * CHUNK + 3;
        const t = CHUNK + 10;
        const [q, k, v] = tokens(N);
        const at = tf.tensor(
          Float32Array.from({length: N}, (_, n) => (n === t ? 1 : 0)),
          [1, 1, N, 1],
        );
        const poisoned = (x: tf.Tensor) =>
          tf.where(tf.cast(tf.tile(at, [1, 2, 1, x.shape[3] as number]), 'bool'), tf.fill(x.shape, bad), x);
        const clean = linearAttention(q, k, v, {causal: true});
        for (const inputs of [
          [q, poisoned(k), v],
          [q, k, poisoned(v)],
        ]) {
          const output = linearAttention(inputs[0], inputs[1], inputs[2], {causal: true});
          expect(rows(output, 0, t).dataSync()).toEqual(rows(clean, 0, t).dataSync());
          expect(rows(output, t, N).dataSync().every(Number.isFinite)).toBe(false);
          expect(
            rows(output, N - 1, N)
              .dataSync()
              .some(Number.isFinite),
          ).toBe(false);
        }
      });
    },
  );

  test('in the composed form NaN stays inside its chunk and after it', () => {
    tf.tidy(() => {
      const N = 3 * CHUNK;
      const [q, k, v] = tokens(N);
      const attrs = {
        ...({updateRule: 'linear', featureMap: 'elu', dataFormat: 'BHND'} as const),
        ...{causal: true, normalize: true, eps: 1e-6, scale: 1, hasMask: false, hasState: false},
      };
      const run = (keys: tf.Tensor) => {
        const none = tf.zeros([1]);
        return composedForward({q, k: keys, v, mask: none, s: none, z: none}, attrs)[0];
      };
      const late = tf.tensor(
        Float32Array.from({length: N}, (_, n) => (n === CHUNK + 5 ? Number.NaN : 0)),
        [1, 1, N, 1],
      );
      const [clean, poisoned] = [run(k), run(tf.add(k, late))];
      expect(rows(poisoned, 0, CHUNK).dataSync()).toEqual(rows(clean, 0, CHUNK).dataSync());
      expect(
        rows(poisoned, CHUNK + 5, N)
          .dataSync()
          .some(Number.isFinite),
      ).toBe(false);
    });
  });

  test('a query that shares no feature with any key gives 0, with gradient 0', async () => {
    await expectNoLeak(() => {
      const [q, k, v] = tokens(5);
      const negative = tf.tidy(() => tf.neg(tf.abs(k)));
      const options = {causal: true, featureMap: 'relu'};
      const output = linearAttention(q, negative, v, options);
      expect(Array.from(output.dataSync()).every((x) => x === 0)).toBe(true);
      const gradients = tf.grads(
        (...x: tf.Tensor[]) => tf.sum(linearAttention(x[0], x[1], x[2], options)) as tf.Scalar,
      )([q, negative, v]);
      for (const gradient of gradients) {
        expect(Array.from(gradient.dataSync()).every((x) => x === 0)).toBe(true);
      }
      tf.dispose([q, k, v, negative, output, ...gradients]);
    });
  });

  test.each([true, false])('values of 1 give outputs of 1 (causal %p)', (causal) => {
    const output = valuesOf(() => {
      const [q, k] = tokens(70);
      return linearAttention(q, k, tf.ones([1, 2, 70, 3]), {causal});
    });
    expect(Math.max(...output.map((x) => Math.abs(x - 1)))).toBeLessThan(1e-6);
  });

  test('three tokens: o = (w1 v1 + w2 v2 + w3 v3) / (w1 + w2 + w3), by weights, by state and step by step', () => {
    tf.tidy(() => {
      const phi = (x: number) => (x > 0 ? x + 1 : Math.exp(x));
      const q = [0.5, -1];
      const k = [
        [1, -0.5],
        [-2, 0.25],
        [0.75, 2],
      ];
      const v = [3, -1, 5];
      const w = k.map((key) => phi(q[0]) * phi(key[0]) + phi(q[1]) * phi(key[1]));
      const expected = (w[0] * v[0] + w[1] * v[1] + w[2] * v[2]) / (w[0] + w[1] + w[2]);
      const values = v.map((x) => [x]);

      const byWeights = linearAttention([[q]], [k], [values], {eps: 0});
      expect(byWeights.dataSync()[0]).toBeCloseTo(expected, 5);

      const {state} = linearAttention([[q, q, q]], [k], [values], {causal: true, returnState: true});
      const [s, z] = [state.s.dataSync(), state.z.dataSync()];
      const byState = (phi(q[0]) * s[0] + phi(q[1]) * s[1]) / (phi(q[0]) * z[0] + phi(q[1]) * z[1]);
      expect(byState).toBeCloseTo(expected, 5);

      let running: {s: tf.Tensor; z: tf.Tensor} = {s: tf.zeros([1, 1, 2, 1]), z: tf.zeros([1, 1, 2])};
      let last = Number.NaN;
      for (let n = 0; n < 3; n++) {
        const step = linearAttentionStep([[q]], [[k[n]]], [[values[n]]], running);
        running = step.state;
        last = step.output.dataSync()[0];
      }
      expect(last).toBeCloseTo(expected, 5);
    });
  });

  test('with elu and eps 1e-6, non-causal, it is the plain einsum form', () => {
    tf.tidy(() => {
      const [B, H, N, r, d] = [2, 3, 19, 5, 4];
      const [q, k, v] = [made([B, H, N, r]), made([B, H, N, r]), made([B, H, N, d])];
      const phi = (x: tf.Tensor) => tf.add(tf.elu(x), 1);
      const [Q, K] = [phi(q), phi(k)];
      const kv = tf.matMul(K, v, true); // bhnr,bhnd->bhrd
      const z = tf.sum(K, 2); // bhnr->bhr
      const num = tf.matMul(Q, kv); // bhnr,bhrd->bhnd
      const den = tf.sum(tf.mul(Q, tf.expandDims(z, 2)), 3, true); // bhnr,bhr->bhn
      const reference = tf.div(num, tf.add(den, 1e-6));
      expectClose(linearAttention(q, k, v).dataSync(), reference.dataSync());
    });
  });

  test('takes nested arrays, int32 and bool tensors, and rank 3 as one head', () => {
    tf.tidy(() => {
      const q = tf.tensor([1, 0, 2, -1, 3, 1], [1, 3, 2], 'int32');
      const k = [
        [
          [1, 2],
          [-1, 0],
          [0, 1],
        ],
      ];
      const v = tf.tensor([1, 0, 1], [1, 3, 1], 'bool');
      const {output, state} = linearAttention(q, k, v, {
        causal: true,
        mask: [[true, false, true]],
        returnState: true,
      });
      expect([output.shape, output.dtype]).toEqual([[1, 3, 1], 'float32']);
      expect([state.s.shape, state.z.shape]).toEqual([
        [1, 1, 2, 1],
        [1, 1, 2],
      ]);
      const wanted = naiveForward(
        {q: [1, 0, 2, -1, 3, 1], k: [1, 2, -1, 0, 0, 1], v: [1, 0, 1], mask: [1, 0, 1]},
        {B: 1, H: 1, Nq: 3, Nk: 3, r: 2, d: 1},
        {causal: true, featureMap: 'elu', normalize: true, eps: 1e-6, scale: 1, dataFormat: 'BHND'},
      );
      expectClose(output.dataSync(), wanted.output);
      expectClose(state.s.dataSync(), wanted.s);
      const same = linearAttention(q, k, v, {
        causal: true,
        mask: tf.tensor([2, 0, 0.5], [1, 3]),
        dataFormat: 'BNHD',
      });
      expect(same.dataSync()).toEqual(output.dataSync());
    });
  });

  test('never returns, keeps or disposes what it was given', async () => {
    await expectNoLeak(() => {
      const inputs = tokens(0);
      const state = {s: made([1, 2, 4, 3]), z: made([1, 2, 4])};
      const result = linearAttention(...inputs, {causal: true, initialState: state, returnState: true});
      expect(result.output.shape).toEqual([1, 2, 0, 3]);
      tf.dispose([result.output, result.state.s, result.state.z]);
      expect([...inputs, state.s, state.z].some((x) => x.isDisposed)).toBe(false);
      expect(state.s.dataSync().every(Number.isFinite)).toBe(true);
      tf.dispose([...inputs, state.s, state.z]);
    });
  });

  test('50 calls give the same bits', () => {
    tf.tidy(() => {
      const inputs = tokens(41);
      const gradients = tf.grads(
        (...x: tf.Tensor[]) =>
          tf.sum(tf.square(linearAttention(x[0], x[1], x[2], {causal: true}))) as tf.Scalar,
      );
      const run = () => [linearAttention(...inputs, {causal: true}), ...gradients(inputs)];
      const first = run().map((x) => x.dataSync());
      for (let i = 1; i < 50; i++) {
        tf.tidy(() => {
          run().forEach((x, j) => {
            expect(x.dataSync()).toEqual(first[j]);
          });
        });
      }
    });
  });

  test('agrees with the oracle for random shapes and options', async () => {
    const size = fc.integer({min: 1, max: 9});
    const cases = fc
      .record({
        N: fc.integer({min: 0, max: 70}),
        Nq: fc.integer({min: 0, max: 20}),
        B: fc.integer({min: 1, max: 3}),
        H: fc.integer({min: 1, max: 3}),
        r: size,
        d: size,
        causal: fc.boolean(),
        featureMap: fc.constantFrom('elu' as const, 'exp' as const, 'relu' as const, 'squaredRelu' as const),
        normalize: fc.boolean(),
        scale: fc.constantFrom(1, 0.5, -2),
        dataFormat: fc.constantFrom('BHND' as const, 'BNHD' as const),
        mask: fc.constantFrom(undefined, 'end' as const, 'start' as const, 'interior' as const),
        state: fc.boolean(),
        inputsAre: fc.constantFrom(undefined, 'slices' as const, 'transposes' as const),
        seed: fc.integer({min: 1, max: 1e6}),
      })
      .map(
        ({Nq, ...options}): ConformanceCase =>
          makeCase('random', {
            ...options,
            ...(options.causal ? {} : {Nq}),
            // A denominator far from 0, so that float32 can be compared; the edge has cases of its own.
            eps: 0.5,
            spread: 0.7,
          }),
      );
    await fc.assert(
      fc.asyncProperty(cases, async (testCase) => {
        expect(await runCase(testCase)).toEqual([]);
      }),
      {numRuns: 25, seed: backend === 'cpu' ? 1 : 2},
    );
  });
});
