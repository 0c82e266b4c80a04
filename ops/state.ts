/** The state of linear attention: all that a stream carries. */
import type * as tf from '@tensorflow/tfjs-core';

/**
 * s = sum phi(k) v^T, [B,H,r',d], and z = sum phi(k), [B,H,r'], whatever the data format; r' is the feature dimension
 * after the map. A state is a value: operations return new ones and never change the one they were given.
 */
export interface LinearAttentionState {
  s: tf.Tensor4D;
  z: tf.Tensor3D;
}
