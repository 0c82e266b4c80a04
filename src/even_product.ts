import * as tf from '@tensorflow/tfjs-core';

const odd = (n: number): number => n % 2;

/**
 * [..,n,r] times [..,r,m]: bnr,brm->bnm, without broadcasting. On webgl every odd size is made even first: tfjs's matMul
 * there reads two elements per texel along the axis that it sums over, and the second of an odd last pair holds whatever
 * the op before left. Forward and backward sum over each of n, r and m.
 */
export function evenProduct(x: tf.Tensor, w: tf.Tensor): tf.Tensor {
  const axis = x.rank - 1;
  const [n, r, m] = [x.shape[axis - 1], x.shape[axis], w.shape[axis]];
  if (tf.getBackend() !== 'webgl' || odd(n) + odd(r) + odd(m) === 0) {
    return tf.matMul(x, w);
  }
  return tf.tidy(() => {
    const before = Array<[number, number]>(axis - 1).fill([0, 0]);
    const product = tf.matMul(
      tf.pad(x, [...before, [0, odd(n)], [0, odd(r)]]),
      tf.pad(w, [...before, [0, odd(r)], [0, odd(m)]]),
    );
    return tf.slice(product, Array(x.rank).fill(0), [...x.shape.slice(0, -1), m]);
  });
}
