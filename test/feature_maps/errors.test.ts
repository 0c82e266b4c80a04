/** Wrong calls of feature maps: each error names the function, the argument, what was expected and what was got. */
import * as tf from '@tensorflow/tfjs-core';
import {
  type FeatureMap,
  featureMaps,
  layers,
  linearAttention,
  linearAttentionStep,
  registerFeatureMap,
  zeroState,
} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {messageOf} from '../helpers/numbers';

// biome-ignore lint/suspicious/noExplicitAny: wrong arguments are the point
type Wrong = any;

const x = [[[1, 2], [3, 4], [5, 6]]]; // biome-ignore format: one head of three tokens
const attend = (options: Wrong) => linearAttention(x, x, x, options);
const step = (options: Wrong) =>
  tf.tidy(() =>
    linearAttentionStep(
      [[[1, 2]]],
      [[[1, 2]]],
      [[[3]]],
      zeroState({batchSize: 1, numHeads: 1, keyDim: 2, valueDim: 1}),
      options,
    ),
  );

const TABLE: [string, () => unknown, string][] = [
  ['an unknown name', () => attend({featureMap: 'eluu'}), "linearAttention: expected featureMap to be one of 'elu', "],
  ['a causal softmax map', () => attend({featureMap: 'softmax', causal: true}), "linearAttention: feature map 'softmax' looks at the whole sequence and cannot be causal; got causal = true."],
  ['a softmax map in a step', () => step({featureMap: 'softmax'}), "linearAttentionStep: feature map 'softmax' looks at the whole sequence and cannot be used step by step."],
  ['a causal layer of the softmax map', () => layers.linearAttention({numHeads: 1, keyDim: 2, causal: true, featureMap: 'softmax'}), "LinearAttention: feature map 'softmax' cannot be used causally: its keys depend on the whole sequence."],
  ['hedgehog without its weights', () => attend({featureMap: 'hedgehog'}), "linearAttention: feature map 'hedgehog' needs featureMapWeights {W [1,2,2], b [1,2]}; got none."],
  ['a weight of the wrong shape', () => attend({featureMap: 'rebased', featureMapWeights: {gamma: [1, 1], beta: [0]}}), 'linearAttention: expected featureMapWeights.beta to be of shape [2]; got [1].'],
  ['a weight that is not there', () => attend({featureMap: 'rebased', featureMapWeights: {gamma: [1, 1], bta: [0, 0]}}), "linearAttention: unknown weight 'bta' in featureMapWeights; feature map 'rebased' has gamma [2], beta [2]."],
  ['weights for a map without', () => attend({featureMap: 'taylor2', featureMapWeights: {W: [1]}}), "linearAttention: feature map 'taylor2' has no weights, but featureMapWeights were given: an object with keys W."],
  ['a map called without its weights', () => featureMaps.rebased().keys(tf.ones([1, 2])), 'featureMaps.rebased: expected ctx.weights.gamma, a tensor; got undefined.'],
  ['nu of 0', () => featureMaps.dpfp({nu: 0}), 'featureMaps.dpfp: expected nu to be a whole number of at least 1; got 0.'],
  ['an unknown option of a map', () => featureMaps.dpfp({mu: 2} as Wrong), "featureMaps.dpfp: unknown option 'mu'; expected 'nu'."],
  ['epsilon of 0', () => featureMaps.rebased({epsilon: 0}), 'featureMaps.rebased: expected epsilon to be a finite number above 0; got 0.'],
  ['an unknown form', () => featureMaps.hedgehog({form: 'relu'} as Wrong), "featureMaps.hedgehog: expected form to be one of 'exp', 'softmax'; got 'relu'."],
  ['a bias that is no boolean', () => featureMaps.hedgehog({useBias: 1} as Wrong), 'featureMaps.hedgehog: expected useBias to be true or false; got 1.'],
  ['cosFormer without its length', () => attend({featureMap: 'cosFormer'}), 'featureMaps.cosFormer: expected maxLength to be a whole number of at least 1; got undefined.'],
  ['cosFormer past its length', () => attend({featureMap: featureMaps.cosFormer({maxLength: 4}), offset: 2}), 'featureMaps.cosFormer: expected positions below maxLength (4); got position 4.'],
  ['an unknown kind', () => featureMaps.favor({kind: 'cos'} as Wrong), "featureMaps.favor: expected kind to be one of 'positive', 'hyperbolic', 'trig', 'relu'; got 'cos'."],
  ['half a feature', () => featureMaps.favor({numFeatures: 1.5}), 'featureMaps.favor: expected numFeatures to be a whole number of at least 1; got 1.5.'],
  ['a seed that is no number', () => featureMaps.favor({seed: 'a'} as Wrong), 'featureMaps.favor: expected seed to be a whole number'],
  ['a projection of the wrong rank', () => featureMaps.favor({projection: [1, 2]}), 'featureMaps.favor: expected projection to be of shape [numFeatures, r]; got [2].'],
  ['a projection of other rows', () => featureMaps.favor({projection: [[1, 2]], numFeatures: 3}), 'featureMaps.favor: expected projection to be of shape [3, r]; got [1,2].'],
  ['a projection of another r', () => attend({featureMap: featureMaps.favor({projection: [[1, 2, 3]]})}), 'featureMaps.favor: expected projection to be of shape [numFeatures, 2]; got [1,3].'],
  ['positions for some tokens', () => attend({featureMap: 'elu', positions: Int32Array.of(0, 1)}), 'linearAttention: expected positions to be an Int32Array of B N (3) numbers of at least 0, with Nq = Nk; got [0,1].'],
  ['positions below 0', () => step({positions: Int32Array.of(-1)}), 'linearAttentionStep: expected positions to be an Int32Array of B N (1) numbers of at least 0'],
  ['positions in a plain array', () => attend({positions: [0, 1, 2]}), 'linearAttention: expected positions to be an Int32Array'],
  ['a registered name that is taken', () => registerFeatureMap('favor', featureMaps.favor), "registerFeatureMap: expected a new name; 'favor' is registered already."],
  ['a name that saving changes', () => registerFeatureMap('my_map', featureMaps.elu), "registerFeatureMap: expected name to be in lower camel case, such as 'myMap', to survive saving; got 'my_map'."],
  ['a factory of another name', () => registerFeatureMap('mine', featureMaps.elu), "registerFeatureMap: expected factory() to return a map named 'mine'; got 'elu'."],
  ['features of the wrong shape', () => attend({featureMap: {...featureMaps.taylor2(), name: 'odd', dim: () => 7} as FeatureMap}), "linearAttention: expected feature map 'odd' to return queries of shape [1,1,3,7]; got [1,1,3,6]."],
  ["odd features with rotary 'numerator'", () => layers.linearAttention({numHeads: 1, keyDim: 2, rotary: 'numerator', featureMap: featureMaps.favor({numFeatures: 3})}), "LinearAttention: expected an even number of features with rotary 'numerator'; got 3 (favor of keyDim 2)."],
]; // biome-ignore format: a table

describeOnBackends('feature maps refuse', () => {
  test.each(TABLE)('%s', (_, call, message) => {
    const before = tf.memory().numTensors;
    expect(messageOf(() => tf.tidy(() => void call()))).toContain(message);
    expect(tf.memory().numTensors).toBe(before);
  });
});
