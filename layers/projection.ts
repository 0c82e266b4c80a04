/**
 * Dense projections into heads and out of them.
 *
 *     into heads:  [B,N,D] x [D,H,r] -> [B,N,H,r]     bnd,dhr->bnhr
 *     out:         [B,N,H,d] x [H,d,O] -> [B,N,O]     bnhd,hdo->bno
 *
 * Each is one matMul of two matrices, between reshapes that move nothing: matMul's gradient is wrong for broadcast
 * operands, and on wasm only the plain matrix product is fast.
 */
import * as tf from '@tensorflow/tfjs-core';

/** x [B,N,D] times kernel [D,H,r], plus bias [H,r]: [B,N,H,r]. Call it inside a tidy. */
export function projectIntoHeads(x: tf.Tensor, kernel: tf.Tensor3D, bias: tf.Tensor | null): tf.Tensor4D {
  const [batch, length, inputDim] = x.shape;
  const [, heads, dim] = kernel.shape;
  const product = matrixProduct(
    tf.reshape(x, [batch * length, inputDim]),
    tf.reshape(kernel, [inputDim, heads * dim]),
    bias,
  );
  return tf.reshape(product, [batch, length, heads, dim]);
}

/** x [B,N,H,d] times kernel [H,d,O], plus bias [O]: [B,N,O]. Call it inside a tidy. */
export function projectOut(x: tf.Tensor, kernel: tf.Tensor3D, bias: tf.Tensor | null): tf.Tensor3D {
  const [batch, length, heads, dim] = x.shape;
  const outputDim = kernel.shape[2];
  const product = matrixProduct(
    tf.reshape(x, [batch * length, heads * dim]),
    tf.reshape(kernel, [heads * dim, outputDim]),
    bias,
  );
  return tf.reshape(product, [batch, length, outputDim]);
}

function matrixProduct(x: tf.Tensor2D, w: tf.Tensor2D, bias: tf.Tensor | null): tf.Tensor2D {
  if (x.shape[0] === 0) {
    return tf.zeros([0, w.shape[1]]); // backends disagree about products of nothing
  }
  const product = tf.matMul(x, w) as tf.Tensor2D;
  return bias === null ? product : tf.add(product, tf.reshape(bias, [w.shape[1]]));
}
