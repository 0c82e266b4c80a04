/** AdamW against its formulas in double precision; its slots; who is decayed. */
import * as tf from '@tensorflow/tfjs-core';
import {training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';

const GRADIENTS = [
  [0.5, -1, 2, 1e-3],
  [-0.2, 3, 0, 1e-3],
  [1, 1, -1, 1e-3],
];
const START = [1, -2, 0.5, 4];

interface Settings {
  learningRate: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  weightDecay: number;
}

/** Loshchilov and Hutter 2019, algorithm 2, in double precision. */
function reference(
  steps: number[][],
  {learningRate, beta1, beta2, epsilon, weightDecay}: Settings,
): number[] {
  let w = [...START];
  let m = START.map(() => 0);
  let v = START.map(() => 0);
  steps.forEach((g, index) => {
    const t = index + 1;
    m = m.map((x, i) => beta1 * x + (1 - beta1) * g[i]!);
    v = v.map((x, i) => beta2 * x + (1 - beta2) * g[i]! ** 2);
    w = w.map((x, i) => {
      const mhat = m[i]! / (1 - beta1 ** t);
      const vhat = v[i]! / (1 - beta2 ** t);
      return x - learningRate * (mhat / (Math.sqrt(vhat) + epsilon) + weightDecay * x);
    });
  });
  return w;
}

/** Applies gradients to one weight [2,2] of that name. */
function run(optimizer: training.AdamW, weight: tf.Variable, steps: number[][]): void {
  for (const g of steps) {
    tf.tidy(() => optimizer.applyGradients({[weight.name]: tf.tensor(g, weight.shape)}));
  }
}

let count = 0;
const variable = (name: string, shape = [2, 2]): tf.Variable =>
  tf.tidy(() => tf.variable(tf.tensor(START, shape), true, `test_${count++}/${name}`));

describeOnBackends('AdamW', () => {
  test.each([
    {learningRate: 0.1, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1},
    {learningRate: 0.01, beta1: 0.5, beta2: 0.999, epsilon: 1e-2, weightDecay: 0},
  ])('three steps equal the published algorithm (%j)', async (settings) => {
    await expectNoLeak(() => {
      const optimizer = training.adamW(settings);
      const weight = variable('kernel');
      run(optimizer, weight, GRADIENTS);
      expect(difference(weight.dataSync(), reference(GRADIENTS, settings), FLOAT32)).toBeNull();
      optimizer.dispose();
      weight.dispose();
    });
  });

  test('biases, gammas, betas, vectors and excluded names are not decayed, matrices are', () => {
    const optimizer = training.adamW({learningRate: 0.1, weightDecay: 0.5});
    const decayed = (name: string, shape = [2, 2]) => {
      const weight = variable(name, shape);
      run(optimizer, weight, [START.map(() => 0)]);
      const changed = weight.dataSync()[0] !== START[0];
      weight.dispose();
      return changed;
    };
    expect(decayed('kernel')).toBe(true);
    expect(decayed('embeddings')).toBe(true);
    expect(decayed('query_bias')).toBe(false);
    expect(decayed('query_bias_1')).toBe(false);
    expect(decayed('gamma')).toBe(false);
    expect(decayed('beta')).toBe(false);
    expect(decayed('kernel', [4])).toBe(false);
    optimizer.dispose();
    const own = training.adamW({exclude: ['embeddings']});
    expect(own.decays({name: 'a/embeddings', shape: [2, 2]})).toBe(false);
    expect(own.decays({name: 'embeddings/query_bias', shape: [2, 2]})).toBe(true);
  });

  test('slots restored into another optimizer continue bit for bit', async () => {
    const continued = async (): Promise<[ArrayLike<number>, ArrayLike<number>]> => {
      const [first, second] = [training.adamW(), training.adamW()];
      const [a, b] = [variable('kernel'), variable('kernel')];
      run(first, a, GRADIENTS);
      b.assign(a);
      const saved = await first.getWeights();
      expect(saved.map(({name}) => name)).toEqual(['iter', `${a.name}/m`, `${a.name}/v`]);
      await second.setWeights(saved);
      saved[0]!.tensor.dispose();
      run(first, a, GRADIENTS);
      run(second, b, GRADIENTS);
      expect(second.iterations).toBe(6);
      const values: [ArrayLike<number>, ArrayLike<number>] = [a.dataSync(), b.dataSync()];
      first.dispose();
      second.dispose();
      tf.dispose([a, b]);
      return values;
    };
    await expectNoLeak(async () => {
      const [a, b] = await continued();
      expect(Array.from(b)).toEqual(Array.from(a));
    });
  });

  test('slots of another shape are refused', async () => {
    const [first, second] = [training.adamW(), training.adamW()];
    const [a, b] = [variable('kernel'), variable('kernel', [4])];
    run(first, a, GRADIENTS);
    const saved = await first.getWeights();
    await second.setWeights(saved);
    expect(() => run(second, b, GRADIENTS)).toThrow(/expected restored slots of shape \[4\].*got \[2,2\]/);
    await expect(second.setWeights(saved.slice(0, 2))).rejects.toThrow(/the same number of \/m and \/v/);
    saved[0]!.tensor.dispose();
    first.dispose();
    second.dispose();
    tf.dispose([a, b]);
  });

  test('minimize works, and a configuration makes the same optimizer', async () => {
    await expectNoLeak(() => {
      const optimizer = training.AdamW.fromConfig(
        training.AdamW as never,
        training.adamW({learningRate: 0.1, weightDecay: 0, exclude: ['x']}).getConfig(),
      ) as training.AdamW;
      expect(optimizer.getConfig()).toEqual({
        learningRate: 0.1,
        beta1: 0.9,
        beta2: 0.95,
        epsilon: 1e-8,
        weightDecay: 0,
        exclude: ['x'],
      });
      expect(optimizer.getClassName()).toBe('AdamW');
      const weight = variable('kernel');
      for (let i = 0; i < 150; i++) {
        optimizer.minimize(() => tf.sum(tf.square(tf.sub(weight, 3))) as tf.Scalar, false, [weight]);
      }
      for (const value of weight.dataSync()) {
        expect(value).toBeCloseTo(3, 1);
      }
      optimizer.dispose();
      weight.dispose();
    });
  });

  test('wrong options are refused by name', () => {
    const cases: [object, RegExp][] = [
      [{lr: 1}, /training.adamW: unknown option 'lr'/],
      [{learningRate: -1}, /expected learningRate to be a finite number of at least 0; got -1/],
      [{learningRate: Number.NaN}, /expected learningRate to be a finite number/],
      [{beta1: 1}, /expected beta1 to be a number in \[0, 1\); got 1/],
      [{beta2: '0.9'}, /expected beta2 to be a number in \[0, 1\); got '0.9'/],
      [{epsilon: 0}, /expected epsilon to be a finite number above 0/],
      [{weightDecay: -0.1}, /expected weightDecay to be a finite number of at least 0/],
      [{exclude: 'bias'}, /expected exclude to be an array of parts of weight names; got 'bias'/],
    ];
    for (const [options, message] of cases) {
      expect(() => training.adamW(options)).toThrow(message);
    }
    const optimizer = training.adamW();
    expect(() => optimizer.applyGradients({nowhere: tf.tensor1d([1])})).toThrow(
      /there is no variable named 'nowhere'/,
    );
    tf.disposeVariables();
  });
});
