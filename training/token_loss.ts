import * as tf from '@tensorflow/tfjs-core';
import {shapeOf, toFloat} from '../src/convert';
import {check, checkInteger, checkOptions, show, showShape} from '../src/errors';
import {runTokenLoss} from '../src/token_loss_kernel';

export interface TokenLossOptions {
  /** Targets with this id do not count. Default: every target counts. */
  ignoreId?: number;
  /** Shape of the targets; where it is 0 a target does not count. */
  mask?: tf.Tensor | tf.TensorLike;
}

const OPTIONS = ['ignoreId', 'mask'];

/**
 * Mean cross entropy, in nats per token, of unnormalised log probabilities against the ids of the right tokens:
 *
 *     loss = mean over counted positions of  log(sum_v exp(logits[.., v])) - logits[.., target]
 *
 * @param targets [B,T] ids in [0, V), int32 (numbers of another dtype are cast). Ids outside are not looked for.
 * @param logits [B,T,V] float32; more or fewer leading dimensions work too, if both have the same.
 * @returns A scalar; 0 when no target counts. The gradient is (softmax(logits) - onehot(targets)) / count; it is made
 *   of differentiable operations, keeps only the logits for backward, and works on every backend.
 *
 * ```js
 * const logits = tf.randomNormal([2, 3, 5]);
 * const targets = tf.tensor2d([[0, 1, 4], [2, 2, 3]], [2, 3], 'int32');
 * training.tokenLoss(targets, logits).print();
 * ```
 */
export function tokenLoss(
  targets: tf.Tensor | tf.TensorLike,
  logits: tf.Tensor | tf.TensorLike,
  options: TokenLossOptions = {},
): tf.Scalar {
  const fn = 'tokenLoss';
  checkOptions(fn, options, OPTIONS);
  const {ignoreId, mask} = options;
  const targetShape = shapeOf(fn, 'targets', targets);
  const logitShape = shapeOf(fn, 'logits', logits);
  const rows = logitShape.slice(0, -1);
  check(
    logitShape.length >= 2 && showShape(rows) === showShape(targetShape),
    fn,
    () =>
      `expected logits of shape [...targets, V], such as [B,T,V] with targets [B,T]; ` +
      `got targets ${showShape(targetShape)}, logits ${showShape(logitShape)}.`,
  );
  if (ignoreId !== undefined) {
    checkInteger(fn, 'ignoreId', ignoreId, Number.MIN_SAFE_INTEGER);
  }
  if (mask !== undefined) {
    const maskShape = shapeOf(fn, 'mask', mask);
    check(
      showShape(maskShape) === showShape(targetShape),
      fn,
      () => `expected mask to have the targets' shape ${showShape(targetShape)}; got ${show(mask)}.`,
    );
  }

  return tf.tidy(() => {
    const size = rows.reduce((a, b) => a * b, 1);
    const vocabSize = logitShape[logitShape.length - 1];
    const x = tf.reshape(toFloat(logits), [size, vocabSize]) as tf.Tensor2D;
    const ids = tf.reshape(toInt(targets), [size]) as tf.Tensor1D;
    let counted: tf.Tensor1D | null = null;
    if (ignoreId !== undefined) {
      counted = tf.notEqual(ids, tf.scalar(ignoreId, 'int32')) as tf.Tensor1D;
    }
    if (mask !== undefined) {
      const kept = tf.reshape(tf.notEqual(toFloat(mask), 0), [size]) as tf.Tensor1D;
      counted = counted === null ? kept : (tf.logicalAnd(counted, kept) as tf.Tensor1D);
    }
    return meanCrossEntropy(x, ids, counted);
  });
}

function toInt(x: tf.Tensor | tf.TensorLike): tf.Tensor {
  if (x instanceof tf.Tensor) {
    return x.dtype === 'int32' ? x : tf.cast(x, 'int32');
  }
  return tf.cast(tf.tensor(x), 'int32');
}

/** @param counted bool [N], or null when every row counts. */
function meanCrossEntropy(logits: tf.Tensor2D, ids: tf.Tensor1D, counted: tf.Tensor1D | null): tf.Scalar {
  const size = logits.shape[0];
  if (counted === null) {
    return runTokenLoss({logits, ids, weights: tf.fill([size], 1 / Math.max(1, size))}, false);
  }
  const ones = tf.cast(counted, 'float32');
  // An ignored id may lie outside [0, V): look up another one in its place.
  const safe = tf.mul(ids, tf.cast(counted, 'int32')) as tf.Tensor1D;
  return runTokenLoss({logits, ids: safe, weights: tf.divNoNan(ones, tf.sum(ones))}, true);
}
