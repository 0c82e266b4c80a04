/**
 * TokenLoss: sum_n weights[n] (log(sum_v exp(logits[n,v])) - logits[n, ids[n]]) as one kernel of stock operations on
 * every backend, so that forward keeps nothing but its inputs. (tf.customGrad would do, but what it saves counts as a
 * leak on the wasm backend under IS_TEST, because cloning copies there.)
 */
import * as tf from '@tensorflow/tfjs-core';

export const TokenLoss = 'TokenLoss';

/** GPUs keep whole numbers in float32, which is exact up to 2^24: beyond, flat indices would be rounded. */
const LARGEST_INDEX = 2 ** 24;

interface TokenLossInputs {
  /** float32 [N,V] */
  logits: tf.Tensor2D;
  /** int32 [N], in [0, V) */
  ids: tf.Tensor1D;
  /** float32 [N]; a row of weight 0 has neither effect nor gradient, even when it holds NaN. */
  weights: tf.Tensor1D;
}

/**
 * Runs the kernel, on whatever backend is active. All inputs stay the caller's.
 *
 * @param masked Some weights are 0.
 */
export function runTokenLoss(inputs: TokenLossInputs, masked: boolean): tf.Scalar {
  const backendName = tf.getBackend();
  if (tf.getKernel(TokenLoss, backendName) == null) {
    tf.registerKernel({kernelName: TokenLoss, backendName, kernelFunc: ({inputs}) => forward(inputs)});
  }
  if (tf.getGradient(TokenLoss) == null) {
    tf.registerGradient(gradient);
  }
  return tf.engine().runKernel(TokenLoss, {...inputs}, {masked}) as tf.Scalar;
}

function forward(inputs: tf.NamedTensorInfoMap): tf.Tensor {
  return tf.tidy(() => {
    const logits = inputs['logits'] as tf.Tensor2D;
    const ids = inputs['ids'] as tf.Tensor1D;
    const weights = inputs['weights'] as tf.Tensor1D;
    // The largest probability is exp(0) / sum exp(x - max), so the log of the sum needs no further pass of exp.
    const logSum = tf.sub(tf.max(logits, 1), tf.log(tf.max(tf.softmax(logits), 1)));
    const losses = tf.sub(logSum, pick(logits, ids));
    return tf.sum(tf.mul(tf.where(tf.greater(weights, 0), losses, tf.zerosLike(losses)), weights));
  });
}

/** x[n, ids[n]], [N]. */
function pick(x: tf.Tensor2D, ids: tf.Tensor1D): tf.Tensor {
  const [size, vocabSize] = x.shape;
  if (x.size <= LARGEST_INDEX) {
    const starts = tf.mul(tf.range(0, size, 1, 'int32'), tf.scalar(vocabSize, 'int32'));
    return tf.gather(tf.reshape(x, [x.size]), tf.add(starts, ids) as tf.Tensor1D);
  }
  return tf.sum(tf.mul(x, oneHot(ids, vocabSize)), 1);
}

/**
 * float32 [N,V]. Through int32: tfjs's wasm kernel fills a float32 one-hot tensor with the bits of whole numbers. tfjs
 * refuses V = 1, the vocabulary of a text of one character.
 */
function oneHot(ids: tf.Tensor1D, depth: number): tf.Tensor {
  if (depth === 1) {
    return tf.cast(tf.expandDims(tf.equal(ids, 0), 1), 'float32');
  }
  return tf.cast(tf.oneHot(ids, depth), 'float32');
}

/** dLogits = weights (softmax(logits) - onehot(ids)) dy, in differentiable operations: any order. */
const gradient: tf.GradConfig = {
  kernelName: TokenLoss,
  inputsToSave: ['logits', 'ids', 'weights'],
  gradFunc: (dy, saved, attrs) => {
    const [logits, ids, weights] = saved as [tf.Tensor2D, tf.Tensor1D, tf.Tensor1D];
    return {
      logits: () => {
        const [size, vocabSize] = logits.shape;
        const scale = tf.reshape(tf.mul(dy as tf.Tensor, weights), [size, 1]);
        const target = oneHot(ids, vocabSize);
        if (!attrs['masked']) {
          return tf.mul(tf.sub(tf.softmax(logits), target), scale);
        }
        const counted = tf.tile(tf.reshape(tf.greater(weights, 0), [size, 1]), [1, vocabSize]);
        const kept = tf.where(counted, tf.softmax(logits), target);
        return tf.mul(tf.sub(kept, target), scale);
      },
      ids: () => tf.zerosLike(ids),
      weights: () => tf.zerosLike(weights),
    };
  },
};
