/** What cancels in a quotient must not be done where there is none. */
import * as tf from '@tensorflow/tfjs-core';
import {featureMaps, linearAttention, models} from '../../index';
import {describeOnBackends} from '../helpers/backends';

const values = (f: () => tf.Tensor) => tf.tidy(() => Array.from(f().dataSync()));

describeOnBackends('favor without a normaliser', () => {
  const q = [[[[0.5, -0.3]]]];
  const k = [[[[0.2, 0.7]]]];
  const v = [[[[2]]]];

  for (const kind of ['positive', 'hyperbolic', 'trig', 'relu'] as const) {
    test(`kind '${kind}' gives the same numbers and gradients whether queries may be stabilised or not`, () => {
      const run = (stabilize: boolean) => {
        const featureMap = featureMaps.favor({numFeatures: 6, seed: 3, kind, stabilize});
        const f = (x: tf.Tensor) => linearAttention(x, k, v, {featureMap, normalize: false});
        return [values(() => f(tf.tensor(q))), values(() => tf.grad(f)(tf.tensor(q)))];
      };
      expect(run(true)).toEqual(run(false));
    });
  }
});

describeOnBackends('weights of a feature map', () => {
  test('are taken by name or in the order that the map declares them', () => {
    const featureMap = featureMaps.hedgehog();
    const x = [[[[0.5, -0.3]]]];
    const made = (featureMap.weights?.(2, 1) ?? []).map(({name, shape}) => [name, shape] as const);
    const run = (listed: boolean) =>
      values(() => {
        const tensors = made.map(
          ([name, shape]) => [name, tf.randomNormal(shape, 0, 1, 'float32', 7)] as const,
        );
        const featureMapWeights = listed ? tensors.map(([, w]) => w) : Object.fromEntries(tensors);
        return linearAttention(x, x, x, {featureMap, featureMapWeights});
      });
    expect(made.length).toBeGreaterThan(1);
    expect(run(true)).toEqual(run(false));
  });
});

describeOnBackends('a refused transformer', () => {
  test.each([
    [
      'softmax',
      "models.transformer: feature map 'softmax' looks at the whole sequence and cannot be causal; got causal = true.",
    ],
    ['foo', /^models\.transformer: expected featureMap to be one of 'elu', .*; got 'foo'\.$/],
    [
      featureMaps.favor({projection: [[1, 2, 3]]}),
      /expected projection to be of shape \[numFeatures, 2\]; got \[1,3\]/,
    ],
  ])('leaves no tensors behind, for feature map %p', (featureMap, message) => {
    const before = tf.memory().numTensors;
    const make = () => models.transformer({vocabSize: 5, dModel: 4, numLayers: 1, numHeads: 2, featureMap});
    expect(make).toThrow(message);
    expect(tf.memory().numTensors).toBe(before);
  });
});

describeOnBackends('maps without settings', () => {
  test('refuse them by name', () => {
    const elu = featureMaps.elu as (config: object) => unknown;
    const taylor2 = featureMaps.taylor2 as (config: object) => unknown;
    expect(() => elu({a: 1})).toThrow("featureMaps.elu: unknown option 'a'; expected none.");
    expect(() => taylor2({nu: 1})).toThrow("featureMaps.taylor2: unknown option 'nu'; expected none.");
  });

  test('options that are no plain object are refused', () => {
    const attend = linearAttention as (...args: unknown[]) => unknown;
    const x = tf.zeros([1, 1, 2, 2]);
    expect(() => attend(x, x, x, [])).toThrow('linearAttention: expected options to be an object; got [].');
    expect(() => attend(x, x, x, new Map())).toThrow(
      'linearAttention: expected options to be an object; got',
    );
    x.dispose();
  });
});
