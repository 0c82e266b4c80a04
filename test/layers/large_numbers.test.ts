/**
 * Queries and keys far from 0. A model that drives features towards 0 by large negative numbers meets large positive
 * ones at positions beyond its training, because rotary 'input' turns them.
 */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {featureMaps, layers} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';

const {hedgehog} = featureMaps;
const MAPS = {
  elu: 'elu',
  relu: 'relu',
  squaredRelu: 'squaredRelu',
  exp: 'exp',
  taylor2: 'taylor2',
  rebased: 'rebased',
  dpfp: 'dpfp',
  hedgehog: 'hedgehog',
  'hedgehog, softmax form': hedgehog({form: 'softmax'}),
  cosFormer: featureMaps.cosFormer({maxLength: 64}),
  favor: 'favor',
};
const [N, D] = [40, 4];

describe('LinearAttention over queries and keys of -60, turned by their positions', () => {
  describeOnBackends('', () => {
    test.each(Object.entries(MAPS))('%s: outputs and gradients are finite', async (_, featureMap) => {
      await expectNoLeak(async () => {
        const layer = layers.linearAttention({
          numHeads: 1,
          keyDim: D,
          causal: true,
          featureMap,
          rotary: 'input',
        });
        const model = tfl.sequential({layers: [tfl.layers.inputLayer({inputShape: [null, D]}), layer]});
        const [output, sum, gradient] = tf.tidy(() => {
          const identity = tf.reshape(tf.eye(D), [D, 1, D]);
          const kernels = [0, 2, 4]; // of queries, keys and values
          layer.setWeights(layer.getWeights().map((x, i) => (kernels.includes(i) ? identity : x)));
          const x = tf.fill([1, N, D], -60);
          const {value, grad} = tf.valueAndGrad((y: tf.Tensor) => tf.sum(model.apply(y) as tf.Tensor))(x);
          return [model.predict(x) as tf.Tensor, value, grad].map((each) => each.dataSync());
        });
        expect(output.every(Number.isFinite)).toBe(true);
        expect(sum.every(Number.isFinite)).toBe(true);
        expect(gradient.every(Number.isFinite)).toBe(true);
        model.dispose();
      });
    });
  });
});
