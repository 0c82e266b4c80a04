/** The weights that a linear attention layer's last query implies for the recent tokens. */
import * as tf from '@tensorflow/tfjs-core';
import {impliedAttention, type layers, rotary} from 'tfjs-linear-attention';

/**
 * `x` [1,M,D] are the layer's inputs for the last M tokens, the first of them at position `offset`; z [1,H,r'] is the
 * state after the last. Call it inside a tidy.
 *
 * @returns weights [H,M] of the last query on these tokens alone, rows summing to 1; and share [H], the part of the
 *   query's weight over its whole past, `sum_j phi(q).phi(k_j) / phi(q).z`, that they make up.
 */
export function recentWeights(
  layer: layers.LinearAttention,
  x: tf.Tensor3D,
  z: tf.Tensor3D,
  offset: number,
): {weights: tf.Tensor2D; share: tf.Tensor1D} {
  const {featureMap, options} = layer;
  const {numHeads, keyDim, rotary: turn, rotaryBase: base, rotaryPairing: pairing, useBias} = options;
  const tokens = x.shape[1];
  const weights = layer.getWeights(); // in the layer's documented order
  const [queryKernel, queryBias, keyKernel, keyBias] = useBias
    ? weights
    : [weights[0], null, weights[1], null];

  const project = (rows: tf.Tensor3D, kernel: tf.Tensor, bias: tf.Tensor | null, at: number) => {
    const flat = tf.matMul(
      tf.reshape(rows, [-1, rows.shape[2]]),
      tf.reshape(kernel, [-1, numHeads * keyDim]),
    );
    const added = bias === null ? flat : tf.add(flat, tf.reshape(bias, [-1]));
    const heads = tf.transpose(tf.reshape(added, [1, -1, numHeads, keyDim]), [0, 2, 1, 3]); // [1,H,M,r]
    return turn === 'input' ? rotary(heads, {offset: at, base, pairing}) : heads;
  };
  const last = tf.slice(x, [0, tokens - 1, 0], [1, 1, -1]) as tf.Tensor3D;
  const q = project(last, queryKernel, queryBias, offset + tokens - 1);
  const k = project(x, keyKernel, keyBias, offset);
  const featureMapWeights = layer.featureMapWeights();
  const implied = impliedAttention(q, k, {featureMap, ...(featureMapWeights && {featureMapWeights})}); // [1,H,1,M]

  const context = featureMapWeights === undefined ? {} : {weights: featureMapWeights};
  const query = featureMap.queries(q, {...context, offset: offset + tokens - 1}); // [1,H,1,r']
  const keys = featureMap.keys(k, {...context, offset}); // [1,H,M,r']
  const here = tf.sum(tf.mul(query, keys), [2, 3]);
  const everywhere = tf.sum(tf.mul(tf.squeeze(query, [2]), z), 2);
  return {
    weights: tf.reshape(implied, [numHeads, tokens]),
    share: tf.reshape(tf.div(here, everywhere), [numHeads]),
  };
}
