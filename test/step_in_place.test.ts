/** linearAttentionStepInPlace: the same numbers as linearAttentionStep, in a state that moves on. */
import * as tf from '@tensorflow/tfjs-core';
import {
  disposeState,
  type LinearAttentionState,
  linearAttention,
  linearAttentionStep,
  linearAttentionStepInPlace,
  zeroState,
} from '../index';
import {wasmOffset} from '../src/tfjs';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {randomNumbers} from './helpers/random_numbers';

const [B, H, N, R, D] = [2, 3, 9, 5, 7];
const SHAPES = {q: [B, H, R], k: [B, H, R], v: [B, H, D]};
let seed = 0;
const made = (shape: number[]) => tf.tensor(randomNumbers(tf.util.sizeFromShape(shape), ++seed), shape);
const token = () => [made(SHAPES.q), made(SHAPES.k), made(SHAPES.v)];
const zero = () => zeroState({batchSize: B, numHeads: H, keyDim: R, valueDim: D});
const valuesOf = (...tensors: tf.Tensor[]) => tensors.map((x) => Array.from(x.dataSync()));
const valuesIn = ({s, z}: LinearAttentionState) => valuesOf(s, z);

describeOnBackends('a step in place', (backend) => {
  // Tests turn tfjs's own checks on, and then a kernel never overwrites: both ways are run.
  describe.each([true, false])('with IS_TEST %s', (isTest) => {
    beforeEach(() => tf.env().set('IS_TEST', isTest));
    afterEach(() => tf.env().set('IS_TEST', true));

    const OPTIONS = {
      'by default': undefined,
      'with another map, and not normalised': {featureMap: 'relu', normalize: false, scale: 0.5},
      'with an offset': {featureMap: 'identity', offset: 3, eps: 1e-3},
      'with positions': {featureMap: 'identity', positions: Int32Array.from([3, 5])},
      'of a batch with a masked row': {mask: [true, false]},
      'with a map of more features': {featureMap: 'dpfp'},
    };
    test.each(Object.entries(OPTIONS))('gives the bits of linearAttentionStep, %s', async (_, options) => {
      await expectNoLeak(() => {
        const keyDim = options && 'featureMap' in options && options.featureMap === 'dpfp' ? 2 * R : R;
        const make = () => zeroState({batchSize: B, numHeads: H, keyDim, valueDim: D});
        const moving = make();
        let state = make();
        for (let n = 0; n < N; n++) {
          tf.tidy(() => {
            const [q, k, v] = token();
            const next = linearAttentionStep(q, k, v, state, options);
            const output = linearAttentionStepInPlace(q, k, v, moving, options);
            expect(output.shape).toEqual([B, H, D]);
            expect(valuesOf(output)).toEqual(valuesOf(next.output));
            expect(valuesIn(moving)).toEqual(valuesIn(next.state));
            disposeState(state);
            state = {s: tf.keep(next.state.s), z: tf.keep(next.state.z)};
          });
        }
        disposeState(state);
        disposeState(moving);
      });
    });

    test('many steps end as one call over the sequence does', async () => {
      await expectNoLeak(() => {
        const state = zero();
        tf.tidy(() => {
          const x = [made([B, H, N, R]), made([B, H, N, R]), made([B, H, N, D])];
          const outputs = Array.from({length: N}, (_, n) => {
            const [q, k, v] = x.map((y) =>
              tf.squeeze(tf.slice(y, [0, 0, n, 0], [B, H, 1, y.shape[3] as number]), [2]),
            );
            return linearAttentionStepInPlace(q, k, v, state);
          });
          const whole = linearAttention(x[0], x[1], x[2], {causal: true, returnState: true});
          const {s, z} = whole.state;
          expect(difference(tf.stack(outputs, 2).dataSync(), whole.output.dataSync(), FLOAT32)).toBeNull();
          expect(difference(state.s.dataSync(), (s as tf.Tensor).dataSync(), FLOAT32)).toBeNull();
          expect(difference(state.z.dataSync(), (z as tf.Tensor).dataSync(), FLOAT32)).toBeNull();
        });
        disposeState(state);
      });
    });

    test('leaves tensors with the same values alone: a fork, a reshaped state, a token that is z itself', async () => {
      await expectNoLeak(() => {
        const state = zero();
        const warm = token();
        linearAttentionStepInPlace(warm[0], warm[1], warm[2], state).dispose();
        const z0 = tf.reshape(state.z, [-1]);
        const z0Before = valuesOf(z0);
        linearAttentionStepInPlace(warm[0], warm[1], warm[2], state).dispose();
        expect(valuesOf(z0)).toEqual(z0Before);
        const fork = {s: tf.clone(state.s), z: tf.clone(state.z)};
        const flat = tf.reshape(state.s, [-1]);
        const before = valuesIn(state);
        const flatBefore = valuesOf(flat);
        const want = linearAttentionStep(warm[0], warm[1], warm[2], fork);
        linearAttentionStepInPlace(warm[0], warm[1], warm[2], state).dispose();
        expect(valuesIn(state)).toEqual(valuesIn(want.state));
        expect(valuesIn(fork)).toEqual(before);
        expect(valuesOf(flat)).toEqual(flatBefore);

        const square = zeroState({batchSize: 1, numHeads: 4, keyDim: 8, valueDim: 8});
        const ones = tf.ones([1, 4, 8]);
        linearAttentionStepInPlace(ones, ones, ones, square).dispose();
        const z = tf.clone(square.z);
        const asValue = linearAttentionStep(ones, ones, z, square);
        const inPlace = linearAttentionStepInPlace(ones, ones, square.z, square);
        expect(valuesOf(inPlace)).toEqual(valuesOf(asValue.output));
        disposeState(square);
        tf.dispose([warm, z0, fork, flat, want, ones, z, asValue, inPlace, state]);
      });
    });

    test('the state outlives a tidy around the step, and not the tidy that it was made in', async () => {
      await expectNoLeak(() => {
        const state = zero();
        for (let n = 0; n < 3; n++) {
          tf.tidy(() => {
            const [q, k, v] = token();
            linearAttentionStepInPlace(q, k, v, state);
          });
        }
        expect(valuesOf(state.z)[0].every((x) => x > 0)).toBe(true);
        disposeState(state);
        tf.tidy(() => {
          const own = zero();
          const [q, k, v] = token();
          linearAttentionStepInPlace(q, k, v, own);
          tf.tidy(() => {
            tf.tidy(() => void linearAttentionStepInPlace(q, k, v, own));
            linearAttentionStepInPlace(q, k, v, own);
          });
          expect(valuesOf(own.z)[0].every((x) => x > 0)).toBe(true);
        });
        const kept = tf.tidy(() => zero());
        tf.tidy(() => {
          const own = zero();
          tf.keep(own.s);
          tf.keep(own.z);
          const [q, k, v] = token();
          linearAttentionStepInPlace(q, k, v, own);
          disposeState(kept);
          Object.assign(kept, own);
        });
        expect(valuesOf(kept.z)[0].every((x) => x > 0)).toBe(true);
        disposeState(kept);
      });
    });

    test('what reads the state afterwards reads the new values, products of matrices included', async () => {
      await expectNoLeak(() => {
        const state = zeroState({batchSize: 1, numHeads: 1, keyDim: 8, valueDim: 8});
        const [one, row, column] = [tf.ones([1, 1, 8]), tf.ones([1, 8]), tf.ones([8, 1])];
        for (let n = 1; n <= 4; n++) {
          linearAttentionStepInPlace(one, one, one, state).dispose();
          tf.tidy(() => {
            const matrix = tf.reshape(state.s, [8, 8]) as tf.Tensor2D;
            // elu + 1 of 1 is 2.
            const read: [string, tf.Tensor, number][] = [
              ['matMul', tf.matMul(row, matrix), 16 * n],
              ['matMul, from the left', tf.matMul(matrix, column), 16 * n],
              ['matMul with z', tf.matMul(row, tf.reshape(state.z, [8, 1])), 16 * n],
              ['sum', tf.sum(state.s), 128 * n],
              [
                'filter',
                tf.conv2d(
                  tf.ones([1, 1, 1, 8]) as tf.Tensor4D,
                  tf.reshape(state.s, [1, 1, 8, 8]),
                  1,
                  'valid',
                ),
                16 * n,
              ],
            ];
            for (const [name, x, want] of read) {
              expect([name, x.dataSync()[0]]).toEqual([name, want]);
            }
          });
        }
        tf.dispose([state, one, row, column]);
      });
    });

    test('a gradient through it is that of linearAttentionStep', async () => {
      await expectNoLeak(() => {
        const x = [...token(), made([B, H, R, D]), made([B, H, R])];
        const weights = made(SHAPES.v);
        const state = ([s, z]: tf.Tensor[]) => ({s: tf.clone(s), z: tf.clone(z)}) as LinearAttentionState;
        const of = (step: (y: tf.Tensor[]) => tf.Tensor) =>
          tf.grads((...y: tf.Tensor[]) => tf.sum(tf.mul(weights, step(y))))(x);
        const got = of(([q, k, v, ...y]) =>
          linearAttentionStepInPlace(
            q,
            k,
            v,
            tf.tidy(() => state(y)),
          ),
        );
        const want = of(
          ([q, k, v, ...y]) =>
            linearAttentionStep(
              q,
              k,
              v,
              tf.tidy(() => state(y)),
            ).output,
        );
        expect(valuesOf(...got)).toEqual(valuesOf(...want));
        tf.dispose([x, weights, got, want]);
      });
    });

    test('a wrong call names the function and the argument, and leaves the state as it was', async () => {
      await expectNoLeak(() => {
        const state = zero();
        const [q, k, v] = token();
        linearAttentionStepInPlace(q, k, v, state).dispose();
        const {s, z} = state;
        const before = valuesIn(state);
        const variable = tf.variable(s);
        const step = linearAttentionStepInPlace as (...args: unknown[]) => tf.Tensor;
        const wrong: [() => unknown, RegExp][] = [
          [() => step(q, k, q, state), /^linearAttentionStepInPlace: expected state\.s/],
          [() => step(q, v, v, state), /^linearAttentionStepInPlace: expected k/],
          [() => step(q, k, v, state, {causal: true}), /^linearAttentionStepInPlace: .*causal/],
          [() => step(q, k, v, state, {featureMap: 'nope'}), /nope/],
          [() => step(q, k, v, undefined), /^linearAttentionStepInPlace: expected state .* got undefined/],
          [
            () => step(q, k, v, {s: variable, z}),
            /^linearAttentionStepInPlace: expected state .* no variables/,
          ],
          [() => step(q, k, v, {s: s.arraySync(), z}), /^linearAttentionStepInPlace: expected state/],
          [() => step(q, k, v, {s}), /^linearAttentionStepInPlace: expected state .* two tensors/],
        ];
        for (const [call, message] of wrong) {
          expect(call).toThrow(message);
        }
        expect([state.s, state.z]).toEqual([s, z]);
        expect(valuesIn(state)).toEqual(before);
        tf.dispose([state, q, k, v, variable]);
      });
    });

    test.each<[string, (x: LinearAttentionState) => LinearAttentionState]>([
      ['frozen', (x) => Object.freeze(x)],
      [
        'with getters only',
        ({s, z}) => ({
          get s() {
            return s;
          },
          get z() {
            return z;
          },
        }),
      ],
      [
        'whose z is read only',
        ({s, z}) => Object.defineProperty({s} as LinearAttentionState, 'z', {value: z, enumerable: true}),
      ],
    ])('a state %s, where it had to be replaced, is an error that leaves it as it was', async (_, made) => {
      await expectNoLeak(() => {
        const {s, z} = zero();
        // They share the state's values, so that these cannot be overwritten.
        const shared = [tf.reshape(s, [-1]), tf.reshape(z, [-1])];
        const state = made({s, z});
        const [q, k, v] = token();
        expect(() => linearAttentionStepInPlace(q, k, v, state)).toThrow(
          /^linearAttentionStepInPlace: expected state.s and state.z to be writable/,
        );
        expect([state.s === s, state.z === z]).toEqual([true, true]);
        expect(valuesIn(state)).toEqual([s, z].map((x) => Array(x.size).fill(0)));
        tf.dispose([s, z, shared, q, k, v]);
      });
    });
  });

  if (backend === 'wasm') {
    test.each([3, 12])(
      'on wasm a stream stays where its first step put it, with %i gaps that begin across cache lines',
      (gaps) => {
        tf.env().set('IS_TEST', false);
        try {
          const shape: [number, number, number, number] = [1, 2, 8, 16];
          const others = Array.from({length: 12 * gaps}, () => tf.zeros(shape));
          const wide = others.filter((x) => wasmOffset(tf.backend(), x) % 16 !== 0);
          expect(wide.length).toBeGreaterThanOrEqual(gaps);
          tf.dispose(wide.slice(0, gaps));
          const state = zeroState({batchSize: 1, numHeads: 2, keyDim: 8, valueDim: 16});
          expect(wasmOffset(tf.backend(), state.s) % 16).not.toBe(0);
          const ones = [tf.ones([1, 2, 8]), tf.ones([1, 2, 8]), tf.ones([1, 2, 16])];
          const step = () => linearAttentionStepInPlace(ones[0], ones[1], ones[2], state).dispose();
          step();
          const {s, z} = state;
          step();
          expect([state.s === s, state.z === z]).toEqual([true, true]);
          tf.dispose([state, ones, others]);
        } finally {
          tf.env().set('IS_TEST', true);
        }
      },
    );

    test('on wasm a stream keeps its two tensors and their memory, whatever its length', () => {
      tf.env().set('IS_TEST', false);
      try {
        const state = zeroState({batchSize: 1, numHeads: 2, keyDim: 8, valueDim: 16});
        const ones = [tf.ones([1, 2, 8]), tf.ones([1, 2, 8]), tf.ones([1, 2, 16])];
        const step = () => linearAttentionStepInPlace(ones[0], ones[1], ones[2], state).dispose();
        step();
        const {s, z} = state;
        const {numBytes} = tf.memory();
        for (let n = 0; n < 100; n++) {
          step();
        }
        expect(state.s).toBe(s);
        expect(state.z).toBe(z);
        expect(tf.memory().numBytes).toBe(numBytes);
        // elu + 1 of 1 is 2, 101 times.
        expect(valuesOf(z)[0].every((x) => x === 202)).toBe(true);
        tf.dispose([state, ones]);
      } finally {
        tf.env().set('IS_TEST', true);
      }
    });
  }
});
