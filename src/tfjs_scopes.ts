/** Which tf.tidy will dispose of a tensor. What is read here was read in tfjs 4.22. */
import * as tf from '@tensorflow/tfjs-core';

/**
 * Lets `fresh`, just made, live as long as `old`, whose place it takes: until the end of the tf.tidy that `old` was made in,
 * if that is open and was not told to keep it; else beyond all.
 */
export function keepLike(old: tf.Tensor, fresh: tf.Tensor): void {
  const {scopeStack, activeScope} = tf.engine().state;
  const scope = old.kept ? undefined : scopeStack?.find(({id}) => id === old.scopeId);
  if (scope === undefined) {
    tf.keep(fresh);
  } else if (scope !== activeScope) {
    activeScope.track = activeScope.track.filter((x) => x !== fresh);
    fresh.scopeId = scope.id;
    scope.track.push(fresh);
  }
}
