import * as tf from '@tensorflow/tfjs-core';
import {shapeOf, toFloat} from '../src/convert';
import {check, checkInteger, checkOptions, show, showShape} from '../src/errors';
import {runTokenLoss} from '../src/token_loss_kernel';

/** Options of `tokenLoss`. */
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
 * @param targets [B,T] ids in [0, V), int32 (numbers of another dtype are cast). Ids outside that count are an error,
 *   except in a tensor on webgl or webgpu, where looking would wait for the GPU: there they must not occur.
 * @param logits [B,T,V] float32; more or fewer leading dimensions work too, if both have the same.
 * @returns A scalar; 0 when no target counts. The gradient is (softmax(logits) - onehot(targets)) / count; it is made
 *   of differentiable operations, keeps only the logits for backward, and works on every backend.
 *
 * ```js
 * const logits = tf.randomNormal([2, 3, 5]);
 * const targets = tf.tensor2d([[0, 1, 4], [2, 2, 3]], [2, 3], 'int32');
 * training.tokenLoss(targets, logits).print();
 * ```
 *
 * @throws Error for shapes that do not go together, ids that are none, and unknown options.
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

  const vocabSize = logitShape[logitShape.length - 1];
  checkIds(fn, {targets, ignoreId, mask}, vocabSize);

  return tf.tidy(() => {
    const size = rows.reduce((a, b) => a * b, 1);
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

/** A target past the end of its row would be looked up in the next one. */
function checkIds(
  fn: string,
  {
    targets,
    ignoreId,
    mask,
  }: Pick<TokenLossOptions, 'ignoreId' | 'mask'> & {targets: tf.Tensor | tf.TensorLike},
  vocabSize: number,
): void {
  const ids = readable(targets);
  if (ids === null) {
    return;
  }
  let kept: ArrayLike<number> | null | undefined;
  for (let i = 0; i < ids.length; i++) {
    const id = Math.trunc(ids[i]);
    if ((id >= 0 && id < vocabSize) || id === ignoreId) {
      continue;
    }
    kept ??= mask === undefined ? [] : readable(mask);
    check(
      kept === null || Number(kept[i]) === 0,
      fn,
      () =>
        `expected targets to be ids from 0 to ${vocabSize - 1}, as there are ${vocabSize} logits; got ${ids[i]}.`,
    );
  }
}

/** The numbers of x in order; null for a tensor that only a GPU has. */
function readable(x: tf.Tensor | tf.TensorLike): ArrayLike<number> | null {
  if (x instanceof tf.Tensor) {
    return ['cpu', 'wasm', 'tensorflow'].includes(tf.getBackend()) ? x.dataSync() : null;
  }
  return ArrayBuffer.isView(x) ? (x as Int32Array) : [x].flat(Number.POSITIVE_INFINITY).map(Number);
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
