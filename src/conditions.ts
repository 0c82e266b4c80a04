/**
 * Conditions for tf.where. tfjs 4.22 has no gradient of comparisons, and throws where one lies between x and the
 * loss, though it would be zero; so these do not record that they depend on x.
 */
import * as tf from '@tensorflow/tfjs-core';

/** f() with the tape off: inside a customGrad nothing is recorded, and f's tensors are not its inputs. */
export function offTape(f: () => tf.Tensor): tf.Tensor {
  const run = tf.customGrad((placeholder) => ({
    value: tf.tidy(f),
    gradFunc: () => tf.zerosLike(placeholder as tf.Tensor),
  }));
  return tf.tidy(() => run(tf.scalar(0)));
}

/** x != 0, so true for NaN. Not a cast to bool, which truncates on wasm (0.5 becomes false). */
export const isNonZero = (x: tf.Tensor): tf.Tensor => offTape(() => tf.notEqual(x, 0));

/** x > 0, so false for NaN. */
export const isPositive = (x: tf.Tensor): tf.Tensor => offTape(() => tf.greater(x, 0));
