import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {addAll} from '../src/add_all';
import {withDropoutSeed} from '../src/dropout';
import type {TokenBatch} from './data';
import {withStockDropoutSeeds} from './stock_dropout';
import {tokenLoss} from './token_loss';

/** Loss and gradients of one micro-batch; all tensors are the caller's. */
export interface LossAndGradients {
  /** The token loss, without regularization penalties. */
  loss: tf.Scalar;
  /** In the variables' order; null where the loss does not depend on the variable. */
  gradients: (tf.Tensor | null)[];
}

/**
 * One forward and backward pass with dropout active. Regularization penalties of the layers count in the gradients.
 *
 * @param seed Of every dropout mask in this pass.
 */
export function lossGradients(
  model: LayersModel,
  variables: tf.Variable[],
  batch: TokenBatch,
  seed: number,
): LossAndGradients {
  const shape: [number, number] = [batch.batchSize, batch.length];
  let loss: tf.Scalar | null = null;
  const {value, grads} = tf.tidy(() => {
    const inputs = tf.tensor2d(batch.inputs, shape, 'int32');
    const targets = tf.tensor2d(batch.targets, shape, 'int32');
    return tf.variableGrads(() => {
      const logits = withDropoutSeed(seed, () =>
        withStockDropoutSeeds(model, seed, () => model.apply(inputs, {training: true}) as tf.Tensor),
      );
      const tokens = tokenLoss(targets, logits);
      const penalties = model.calculateLosses();
      if (penalties.length === 0) {
        return tokens;
      }
      loss = tf.keep(tf.clone(tokens));
      return addAll([tokens, ...penalties]) as tf.Scalar;
    }, variables);
  });
  if (loss !== null) {
    value.dispose();
  }
  return {loss: loss ?? value, gradients: variables.map(({name}) => grads[name] ?? null)};
}

/** Adds `more` to `sum`, and disposes both. */
export function addGradients(
  sum: (tf.Tensor | null)[] | null,
  more: (tf.Tensor | null)[],
): (tf.Tensor | null)[] {
  if (sum === null) {
    return more;
  }
  return sum.map((a, i) => {
    const b = more[i];
    if (a === null || b === null) {
      return a ?? b;
    }
    const c = tf.add(a, b);
    tf.dispose([a, b]);
    return c;
  });
}
