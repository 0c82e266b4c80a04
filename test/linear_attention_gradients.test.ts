/** Gradients of linearAttention beyond the first order, what they leave behind, and how much they hold at once. */
import * as tf from '@tensorflow/tfjs-core';
import {linearAttention, linearAttentionStep} from '../index';
import {composedBackward, composedForward} from '../src/linear_attention/composed';
import {naiveBackward} from '../src/linear_attention/naive';
import type {LinearAttentionAttrs} from '../src/linear_attention/spec';
import {makeCase} from './conformance/cases';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference} from './helpers/compare';
import {centralDifferences} from './helpers/finite_differences';

const CASES = [
  makeCase('causal and normalised', {N: 5, H: 1, r: 3, d: 2}),
  makeCase('causal over two chunks with mask and state', {
    N: 35,
    H: 1,
    r: 2,
    d: 2,
    mask: 'interior',
    state: true,
  }),
  makeCase('non-causal with more keys than queries', {Nq: 3, Nk: 6, H: 1, r: 3, d: 2, causal: false}),
  makeCase('unnormalised, of [B,N,H,.] inputs', {N: 4, r: 2, d: 3, normalize: false, dataFormat: 'BNHD'}),
  makeCase('with the exp map', {N: 4, H: 1, r: 2, d: 2, featureMap: 'exp', spread: 0.5}),
  makeCase('with the squaredRelu map', {
    N: 4,
    H: 1,
    r: 3,
    d: 2,
    featureMap: 'squaredRelu',
    shift: 1,
    spread: 0.3,
  }),
];

type Name = 'q' | 'k' | 'v' | 's' | 'z';

describeOnBackends('higher-order gradients of linearAttention', (backend) => {
  test.each(CASES.map((c) => [c.id, c] as const))(
    'the second order is the derivative of the first: %s',
    async (_, {dims, attrs, ...testCase}) => {
      await expectNoLeak(() => {
        const values = testCase.values();
        const {B, H, Nq, Nk, r, d} = dims;
        const rows = (N: number, w: number) => (attrs.dataFormat === 'BHND' ? [B, H, N, w] : [B, N, H, w]);
        const shapes = {q: rows(Nq, r), k: rows(Nk, r), v: rows(Nk, d), s: [B, H, r, d], z: [B, H, r]};
        const names: Name[] = values.s === undefined ? ['q', 'k', 'v'] : ['q', 'k', 'v', 's', 'z'];
        const tensors = names.map((name) => tf.tensor(values[name] as Float32Array, shapes[name]));
        const mask = values.mask && tf.tensor(values.mask, [B, Nk]);
        const dOutput = tf.tensor(values.dOutput, rows(Nq, d));

        const loss = (...x: tf.Tensor[]) => {
          const initialState = x.length > 3 ? {initialState: {s: x[3], z: x[4]}} : {};
          const output = linearAttention(x[0], x[1], x[2], {...attrs, mask, ...initialState});
          return tf.sum(tf.mul(output, dOutput)) as tf.Scalar;
        };
        // g(x) = sum of squares of the first-order gradients, whose gradient needs every second-order one.
        const second = tf.grads(
          (...x: tf.Tensor[]) =>
            tf.addN(
              tf
                .grads(loss)(x)
                .map((gradient) => tf.sum(tf.square(gradient))),
            ) as tf.Scalar,
        )(tensors);
        const zeros = {dS: new Float32Array(B * H * r * d), dZ: new Float32Array(B * H * r)};
        const g = (name: Name, x: Float64Array) => {
          const first = naiveBackward({...values, [name]: x}, dims, attrs, {...values, ...zeros});
          return names.reduce((sum, n) => sum + first[`d${n}`].reduce((a, b) => a + b * b, 0), 0);
        };
        names.forEach((name, i) => {
          const numeric = centralDifferences((x) => g(name, x), values[name] as Float32Array);
          const fault = difference(second[i].dataSync(), numeric, {rms: 1e-4, max: 1e-4}, 1e-5);
          expect([name, fault]).toEqual([name, null]);
        });
        tf.dispose([tensors, mask, dOutput, second].filter((x) => x !== undefined));
      });
    },
  );

  test('the third order is the derivative of the second', async () => {
    await expectNoLeak(() => {
      const inputs = [0.5, -1.2, 0.3, 2, -0.7, 1.1];
      const k = tf.tensor([0.2, -0.4, 1.5, 0.1, -2, 0.6], [1, 1, 3, 2]);
      const v = tf.tensor([1, -1, 2], [1, 1, 3, 1]);
      type F = (x: tf.Tensor) => tf.Tensor;
      const f: F = (q) => tf.sum(tf.square(linearAttention(q, k, v, {causal: true})));
      const g: F = (q) => tf.sum(tf.square(tf.grad(f)(q)));
      const h: F = (q) => tf.sum(tf.square(tf.grad(g)(q)));
      const at = (x: ArrayLike<number>) => tf.tensor(Float32Array.from(x), [1, 1, 3, 2]);
      const third = tf.tidy(() => tf.grad(h)(at(inputs)).dataSync());
      // float32 differences of the second-order gradient: good to about 1e-3.
      const numeric = centralDifferences((x) => tf.tidy(() => h(at(x)).dataSync()[0]), inputs, 1e-2);
      expect(difference(third, numeric, {rms: 1e-2, max: 1e-2}, 1e-5)).toBeNull();
      expect(Math.max(...third.map(Math.abs))).toBeGreaterThan(1e-3);
      tf.dispose([k, v]);
    });
  });

  test('a mask may be made from what is differentiated: nothing flows through it', () => {
    tf.tidy(() => {
      const x = tf.tensor([1, 0, 2], [1, 3, 1]);
      const v = tf.tensor([1, 5, -2], [1, 3, 1]);
      const asMask = tf.grad((y) => tf.sum(linearAttention(y, y, v, {mask: tf.squeeze(y, [2])})))(x);
      const constant = tf.grad((y) => tf.sum(linearAttention(y, y, v, {mask: [[1, 0, 1]]})))(x);
      expect(asMask.dataSync()).toEqual(constant.dataSync());
      expect(constant.dataSync().some((g) => Math.abs(g) > 1e-3)).toBe(true);
    });
  });

  test('forward, gradient, gradient of gradient and step leave no tensors behind', async () => {
    const inputs = [
      [1, 2, 9, 4],
      [1, 2, 9, 4],
      [1, 2, 9, 3],
    ].map((shape) => tf.ones(shape));
    const loss = (...x: tf.Tensor[]) =>
      tf.sum(tf.square(linearAttention(x[0], x[1], x[2], {causal: true}))) as tf.Scalar;
    const states = {s: tf.ones([1, 2, 4, 3]), z: tf.ones([1, 2, 4])};
    const one = [
      [1, 2, 4],
      [1, 2, 4],
      [1, 2, 3],
    ].map((shape) => tf.ones(shape));
    for (let i = 0; i < 2; i++) {
      await expectNoLeak(() => linearAttention(inputs[0], inputs[1], inputs[2], {causal: true}).dispose());
      await expectNoLeak(() => tf.dispose(tf.grads(loss)(inputs)));
      await expectNoLeak(() =>
        tf.dispose(
          tf.grads((...x: tf.Tensor[]) => tf.sum(tf.square(tf.grads(loss)(x)[0])) as tf.Scalar)(inputs),
        ),
      );
      await expectNoLeak(() => {
        const {output, state} = linearAttentionStep(one[0], one[1], one[2], states);
        tf.dispose([output, state.s, state.z]);
      });
    }
    tf.dispose([inputs, one, states.s, states.z]);
  });

  if (backend === 'cpu') {
    const [N, H, r, d] = [256, 2, 16, 16];

    /** The largest tensor that the cpu backend holds while f runs, in elements. */
    function largestTensor(f: () => void): number {
      const cpu = tf.backend() as tf.KernelBackend;
      const write = cpu.write;
      let largest = 0;
      cpu.write = (values, shape, dtype) => {
        largest = Math.max(largest, tf.util.sizeFromShape(shape));
        return write.call(cpu, values, shape, dtype);
      };
      try {
        tf.tidy(f);
      } finally {
        cpu.write = write;
      }
      return largest;
    }

    test.each([true, false])(
      'no tensor of N N or N r d elements is made, forward or backward (causal %p)',
      (causal) => {
        const largest = largestTensor(() => {
          const x = [tf.ones([1, H, N, r]), tf.ones([1, H, N, r]), tf.ones([1, H, N, d])];
          tf.grads((...y: tf.Tensor[]) => tf.sum(linearAttention(y[0], y[1], y[2], {causal})) as tf.Scalar)(
            x,
          );
        });
        expect(largest).toBe(H * N * r);
      },
    );

    test('the composed form makes none either', () => {
      const attrs: LinearAttentionAttrs = {
        updateRule: 'linear',
        causal: true,
        featureMap: 'elu',
        normalize: true,
        eps: 1e-6,
        scale: 1,
        dataFormat: 'BHND',
        hasMask: false,
        hasState: false,
      };
      const largest = largestTensor(() => {
        const [q, k, v] = [tf.ones([1, H, N, r]), tf.ones([1, H, N, r]), tf.ones([1, H, N, d])];
        const none = tf.zeros([1]);
        const inputs = {q, k, v, mask: none, s: none, z: none};
        const [output, , , inverse] = composedForward(inputs, attrs);
        const gradients = {dOutput: output, dS: tf.zeros([1, H, r, d]), dZ: tf.zeros([1, H, r])};
        composedBackward(inputs, gradients, attrs, {output, inverse});
      });
      expect(largest).toBeLessThanOrEqual(H * N * 32); // scores inside chunks
      expect(largest).toBeLessThan(H * N * r * d);
      expect(largest).toBeLessThan(H * N * N);
    });
  }
});
