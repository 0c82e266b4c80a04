/**
 * The pieces of the composed form on tfjs-node, where a pass over memory costs more than the arithmetic: longer chunks,
 * the states before each chunk by adding one after the other (an addition takes 10 us, tf.cumsum twice as long as all of
 * them), and TensorFlow's own operations where tfjs takes several. They run inside kernels only: no tape sees them.
 */
import * as tf from '@tensorflow/tfjs-core';
import {type PointwiseMap, pointwise, pointwiseGradient} from '../pointwise';
import {nodeBackend, runOperation} from '../tfjs_node';
import {type Pieces, STOCK} from './chunks';

function runningSum(x: tf.Tensor, reverse: boolean): tf.Tensor {
  return tf.tidy(() => {
    const parts = tf.unstack(x, 1);
    const order = parts.map((_, i) => (reverse ? parts.length - 1 - i : i));
    for (const [before, i] of order.slice(1).map((i, n) => [order[n], i])) {
      parts[i] = tf.add(parts[before], parts[i]);
    }
    return tf.stack(parts, 1);
  });
}

function lowerTriangular(x: tf.Tensor): tf.Tensor {
  const backend = nodeBackend(tf.backend());
  return backend === null
    ? STOCK.lowerTriangular(x)
    : tf.tidy(
        () =>
          runOperation(backend, 'MatrixBandPart', [x, tf.scalar(-1, 'int32'), tf.scalar(0, 'int32')], {
            T: 'TF_FLOAT',
            Tindex: 'TF_INT32',
          })[0],
      );
}

/** What exp gives for large x is not selected; the stock form avoids it for the sake of gradients. */
const map = (name: PointwiseMap, x: tf.Tensor): tf.Tensor =>
  name === 'elu' ? tf.tidy(() => tf.where(tf.greater(x, 0), tf.add(x, 1), tf.exp(x))) : pointwise(name, x);

const mapGradient: Pieces['mapGradient'] = (name, dPhi, x, phi) =>
  name === 'elu' ? tf.tidy(() => tf.mul(dPhi, tf.minimum(phi, 1))) : pointwiseGradient(name, dPhi, x, phi);

export const NODE_PIECES: Pieces = {chunk: 64, runningSum, lowerTriangular, map, mapGradient};
