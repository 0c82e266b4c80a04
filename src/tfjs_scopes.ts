/** Which tf.tidy will dispose of a tensor. What is read here was read in tfjs 4.22. */
import * as tf from '@tensorflow/tfjs-core';

/** Lets `fresh` live as long as `old`, whose place it takes: beyond the open tf.tidy, unless that will dispose of `old`. */
export function keepLike(old: tf.Tensor, fresh: tf.Tensor): void {
  if (old.kept || old.scopeId !== tf.engine().state?.activeScope?.id) {
    tf.keep(fresh);
  }
}
