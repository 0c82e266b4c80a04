/** AdamW as one kernel per weight: the algorithm in double precision, every length, nothing left behind. */
import * as tf from '@tensorflow/tfjs-core';
import {training} from '../index';
import {random} from '../src/random';
import {disableSimd} from '../src/wasm/instance';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference} from './helpers/compare';

const OPTIONS = {learningRate: 0.01, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1};
const STEPS = 5;

/** Algorithm 2 of Loshchilov and Hutter 2019, number by number; gradients[t][i]. */
function reference(start: number[], gradients: number[][], decay: number): number[] {
  const {learningRate, beta1, beta2, epsilon} = OPTIONS;
  return start.map((w, i) => {
    let [m, v] = [0, 0];
    gradients.forEach((gradient, index) => {
      const t = index + 1;
      m = beta1 * m + (1 - beta1) * gradient[i];
      v = beta2 * v + (1 - beta2) * gradient[i] ** 2;
      const change = m / (1 - beta1 ** t) / (Math.sqrt(v / (1 - beta2 ** t)) + epsilon);
      w -= learningRate * (change + decay * w);
    });
    return w;
  });
}

describeOnBackends('AdamW', (backend) => {
  let names = 0;
  /** Runs STEPS steps on a weight of `shape`, and the reference. */
  function run(shape: number[], name: string): string | null {
    const stream = random(shape.length);
    const size = tf.util.sizeFromShape(shape);
    const numbers = () => Array.from({length: size}, () => Math.fround(2 * stream.uniform() - 1));
    const start = numbers();
    const gradients = Array.from({length: STEPS}, numbers);
    const optimizer = training.adamW(OPTIONS);
    const weight = tf.tidy(() => tf.variable(tf.tensor(start, shape), true, `${name}_${names++}/${name}`));
    for (const gradient of gradients) {
      tf.tidy(() => optimizer.applyGradients({[weight.name]: tf.tensor(gradient, shape)}));
    }
    const got = weight.dataSync();
    weight.dispose();
    optimizer.dispose();
    const decays = shape.length >= 2 && name === 'kernel';
    return difference(got, reference(start, gradients, decays ? OPTIONS.weightDecay : 0), {
      rms: 1e-6,
      max: 2e-6,
    });
  }

  test.each([[[3, 5]], [[4, 8]], [[1, 1]], [[2, 3, 7]]])(
    'moves a kernel of shape %j by the algorithm',
    (shape) => {
      expect(run(shape, 'kernel')).toBeNull();
    },
  );

  test('does not decay biases', () => {
    expect(run([9], 'bias')).toBeNull();
    expect(run([3, 3], 'query_bias')).toBeNull();
  });

  test('runs one kernel per weight', async () => {
    const optimizer = training.adamW(OPTIONS);
    const weight = tf.tidy(() => tf.variable(tf.ones([3, 2]), true, `w_${names++}`));
    const gradient = tf.ones([3, 2]);
    const {kernelNames} = await tf.profile(() => optimizer.applyGradients({[weight.name]: gradient}));
    expect(kernelNames).toContain('AdamWStep');
    expect(kernelNames).not.toContain('Sqrt');
    optimizer.dispose();
    tf.dispose([weight, gradient]);
  });

  test('leaves nothing behind', async () => {
    await expectNoLeak(() => run([5, 3], 'kernel'));
  });

  if (backend === 'wasm') {
    test('gives the same where SIMD is missing', () => {
      try {
        disableSimd(true);
        expect(run([3, 5], 'kernel')).toBeNull();
      } finally {
        disableSimd(false);
      }
    });
  }
});
