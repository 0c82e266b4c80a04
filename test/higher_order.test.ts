/** Third derivatives: tfjs's own exp and softmax lose terms from the second on. */
import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {linearAttention, rotary, softmaxAttention} from '../ops';
import {describeOnBackends} from './helpers/backends';

/** f'(x), f''(x), f'''(x) of a function of one number, by nested tf.grad. */
function derivatives(f: (x: tf.Tensor) => tf.Tensor, x: number): number[] {
  const first = tf.grad((at) => tf.sum(f(at)));
  const second = tf.grad((at) => tf.sum(first(at)));
  const third = tf.grad((at) => tf.sum(second(at)));
  return tf.tidy(() => [first, second, third].map((g) => g(tf.scalar(x)).dataSync()[0]));
}

/** The same of a function in double precision, by central differences. */
function differences(f: (x: number) => number, x: number, h = 2e-3): number[] {
  const [a, b, c, d, e] = [-2, -1, 0, 1, 2].map((n) => f(x + n * h));
  return [(d - b) / (2 * h), (d - 2 * c + b) / h ** 2, (e - 2 * d + 2 * b - a) / (2 * h ** 3)];
}

const K = [0.8, -0.6, 0.3];
const V = [1, 2, -1.5];

/** One query of one feature against the three keys above. */
const attention =
  (op: (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) => tf.Tensor) =>
  (x: tf.Tensor): tf.Tensor =>
    op(tf.reshape(x, [1, 1, 1]), tf.tensor3d(K, [1, 3, 1]), tf.tensor3d(V, [1, 3, 1]));

const mean = (weights: number[]): number =>
  weights.reduce((sum, w, j) => sum + w * V[j], 0) / weights.reduce((sum, w) => sum + w, 0);
const elu = (x: number) => (x > 0 ? x + 1 : Math.exp(x));

describeOnBackends('derivatives of order 1, 2 and 3 equal central differences', () => {
  const close = (got: number[], want: number[]) =>
    got.forEach((value, i) => {
      expect(Math.abs(value - want[i])).toBeLessThan(1e-3 * Math.max(1, Math.abs(want[i])));
    });

  test('of softmaxAttention', () => {
    const op = attention((q, k, v) => softmaxAttention(q, k, v, {scale: 2}));
    close(
      derivatives(op, 0.7),
      differences((x) => mean(K.map((k) => Math.exp(2 * x * k))), 0.7),
    );
  });

  test.each(['elu', 'exp'])('of linearAttention with normalize = false and %s', (featureMap) => {
    const phi = featureMap === 'elu' ? elu : Math.exp;
    const op = attention((q, k, v) => linearAttention(q, k, v, {featureMap, normalize: false}));
    const square = (x: tf.Tensor) => tf.square(op(x));
    const value = (x: number) => K.reduce((sum, k, j) => sum + phi(x) * phi(k) * V[j], 0) ** 2;
    close(derivatives(square, -0.4), differences(value, -0.4));
  });

  test('of rotary', () => {
    const op = (x: tf.Tensor) => {
      const turned = rotary(tf.reshape(tf.stack([x, tf.square(x)]), [1, 1, 2]), {offset: 1});
      return tf.mul(tf.sum(tf.mul(turned, tf.tensor3d([1, 2], [1, 1, 2]))), x);
    };
    const [cos, sin] = [Math.cos(1), Math.sin(1)];
    close(
      derivatives(op, 0.7),
      differences((x) => (x * cos - x * x * sin + 2 * (x * sin + x * x * cos)) * x, 0.7),
    );
  });
});
