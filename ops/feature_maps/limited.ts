/** Exponents that cannot overflow. */
import * as tf from '@tensorflow/tfjs-core';

/**
 * Products of two features exp(30), summed over billions of tokens, are within float32; at 44 a single product is not.
 * Weights that differ by e^60 already pick one token alone.
 */
const LARGEST = 30;

/** min(x, 30). NaN stays NaN on every backend, which tf.minimum and tf.clipByValue do not promise. */
export const limited = <T extends tf.Tensor>(x: T): T =>
  tf.tidy(() => tf.sub(x, tf.relu(tf.sub(x, LARGEST))));
