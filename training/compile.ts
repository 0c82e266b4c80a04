import type * as tf from '@tensorflow/tfjs-core';
import type {LayersModel, ModelCompileArgs} from '@tensorflow/tfjs-layers';
import {check, checkOptions, show} from '../src/errors';
import {relaxTargets} from '../src/tfjs';
import {tokenLoss} from './token_loss';

/** Arguments of `compile`. */
export interface CompileArgs {
  /** A tf.Optimizer (such as `training.adamW()`), or a name that tfjs knows ('adam', 'sgd', ...). */
  optimizer: string | tf.Optimizer;
  /** As in tfjs's compile. Metrics get the int32 targets [B,T] and the logits [B,T,V]. */
  metrics?: ModelCompileArgs['metrics'];
}

/**
 * Compiles a model whose output is logits [B,T,V] for int32 targets [B,T]: sets {@link tokenLoss} and lets `fit`,
 * `fitDataset`, `trainOnBatch` and `evaluate` take such targets. tfjs itself has no loss of this kind and refuses the
 * shape.
 *
 * Returns the model. On the wasm backend apply `patches.wasmTraining()` before tfjs's own `fit`.
 *
 * ```js
 * training.compile(model, {optimizer: training.adamW({learningRate: 1e-3})});
 * await model.fit(inputs, targets, {epochs: 1, batchSize: 8});  // int32 [B,T] both
 * ```
 *
 * @throws Error for a model with several outputs, and for unknown arguments.
 */
export function compile(model: LayersModel, args: CompileArgs): LayersModel {
  const fn = 'training.compile';
  check(
    typeof model?.compile === 'function' && Array.isArray(model.outputs),
    fn,
    () => `expected model to be a tf.LayersModel; got ${show(model)}.`,
  );
  checkOptions(fn, args, ['optimizer', 'metrics'], 'args');
  check(
    args?.optimizer !== undefined && args.optimizer !== null,
    fn,
    () => `expected args.optimizer to be an optimizer or its name; got ${show(args?.optimizer)}.`,
  );
  check(
    model.outputs.length === 1,
    fn,
    () => `expected a model with one output, logits [B,T,V]; got ${model.outputs.length} outputs.`,
  );
  model.compile({
    optimizer: args.optimizer,
    loss: (targets: tf.Tensor, logits: tf.Tensor) => tokenLoss(targets, logits),
    ...(args.metrics === undefined ? {} : {metrics: args.metrics}),
  });
  relaxTargets(model);
  return model;
}
