/** A gradient for tf.cumsum that is right along every axis. */
import * as tf from '@tensorflow/tfjs-core';
import {gradientAttributes} from './kernel_arguments';
import {patch, replaceGradient, type Undo} from './patch';

interface CumsumAttrs {
  axis: number;
  exclusive: boolean;
  reverse: boolean;
}

/**
 * Replaces the gradient of `tf.cumsum`. tfjs 4.22's throws off the last axis, or silently returns the transpose when
 * the two sizes are equal; no issue of tensorflow/tfjs that we know of describes it (gradients/Cumsum_grad.ts transposes a sum whose
 * axes are in order already). Differentiable to any order.
 *
 * When a later tfjs has mended its gradient, that one is used: it is tried once, on a 2x3 example.
 *
 * ```js
 * const undo = patches.cumsumGradient();
 * tf.grad((x) => tf.sum(tf.mul(tf.cumsum(x, 0), x)))(tf.ones([2, 3])).print();
 * undo();
 * ```
 *
 * @returns undo(), which restores what was registered before.
 */
export const cumsumGradient: () => Undo = patch(() => {
  const stock = tf.getGradient(tf.Cumsum);
  let stockIsRight: boolean | undefined;
  return replaceGradient({
    kernelName: tf.Cumsum,
    inputsToSave: ['x'],
    gradFunc: (dy, saved, attrs) => {
      if (stock != null) {
        stockIsRight ??= keepsAxes(stock);
        if (stockIsRight) {
          return stock.gradFunc(dy, saved, attrs);
        }
      }
      const {axis, exclusive, reverse} = gradientAttributes<CumsumAttrs>(attrs);
      return {x: () => sumsAlong(dy as tf.Tensor, axis, exclusive, !reverse)};
    },
  });
});

/** Whether a gradient of Cumsum along the first axis has the shape of its input. */
function keepsAxes(stock: tf.GradConfig): boolean {
  const result = tf.tidy(() => {
    try {
      const attrs = {axis: 0, exclusive: false, reverse: false};
      return stock
        .gradFunc(tf.ones([2, 3]), [tf.zeros([2, 3])], attrs)
        .x()
        .shape.join();
    } catch {
      return '';
    }
  });
  return result === '2,3';
}

/** cumsum; on webgpu without tfjs's reverse and exclusive forms, which are wrong there from the second length on. */
function sumsAlong(x: tf.Tensor, axis: number, exclusive: boolean, reverse: boolean): tf.Tensor {
  if (tf.getBackend() !== 'webgpu' || !(exclusive || reverse)) {
    return tf.cumsum(x, axis, exclusive, reverse);
  }
  const turned = reverse ? tf.reverse(x, axis) : x;
  let sums: tf.Tensor = tf.cumsum(turned, axis);
  if (exclusive) {
    const [first, rest] = tf.split(sums, [sums.shape[axis] - 1, 1], axis);
    sums = tf.concat([tf.zerosLike(rest), first], axis);
  }
  return reverse ? tf.reverse(sums, axis) : sums;
}
