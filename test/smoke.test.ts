import * as tf from '@tensorflow/tfjs-core';
import {describeOnBackends} from './helpers/backends';

describeOnBackends('tfjs', () => {
  test('adds', () => {
    expect(tf.tidy(() => tf.add(tf.scalar(1), 2).dataSync()[0])).toBe(3);
  });
});
