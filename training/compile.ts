import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel, ModelCompileArgs} from '@tensorflow/tfjs-layers';
import {check, checkOptions, show, showShape} from '../src/errors';
import {relaxTargets} from '../src/tfjs';
import {tokenLoss} from './token_loss';

/** Arguments of `compile`. */
export interface CompileArgs {
  /** A tf.Optimizer (such as `training.adamW()`), or a name that tfjs knows ('adam', 'sgd', ...). */
  optimizer: string | tf.Optimizer;
  /**
   * 'accuracy' (under the name acc: how often the largest logit is the target's), or functions of the int32 targets
   * [B,T] and the logits [B,T,V]; of [B,1] and [B,V] for a classifier.
   */
  metrics?: ModelCompileArgs['metrics'];
}

type Metric = (targets: tf.Tensor, logits: tf.Tensor) => tf.Tensor;

/**
 * Compiles a model whose output is logits [B,T,V] for int32 targets [B,T], or [B,V] (a classifier) for targets [B]:
 * sets {@link tokenLoss} and lets `fit`, `fitDataset`, `trainOnBatch` and `evaluate` take such targets. tfjs itself has
 * no loss of this kind and refuses the shape.
 *
 * Returns the model. On the wasm backend apply `patches.wasmTraining()` before tfjs's own `fit`.
 *
 * ```js
 * training.compile(model, {optimizer: training.adamW({learningRate: 1e-3}), metrics: ['accuracy']});
 * await model.fit(inputs, targets, {epochs: 1, batchSize: 8});  // int32 [B,T] both
 * ```
 *
 * @throws Error for a model with several outputs or one of another rank, for unknown arguments, and for tfjs's other
 *   metrics, which do not fit ids.
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
  const {shape} = model.outputs[0];
  check(
    shape.length === 2 || shape.length === 3,
    fn,
    () => `expected a model whose output is logits [B,T,V] or [B,V]; got ${showShape(shape)}.`,
  );
  model.compile({
    optimizer: args.optimizer,
    loss: (targets: tf.Tensor, logits: tf.Tensor) => tf.tidy(() => tokenLoss(asIds(targets, logits), logits)),
    ...(args.metrics === undefined ? {} : {metrics: metricsOf(fn, args.metrics)}),
  });
  relaxTargets(model);
  return model;
}

/** Targets of the logits' shape without V: tfjs makes labels [B] to [B,1]. */
const asIds = (targets: tf.Tensor, logits: tf.Tensor): tf.Tensor =>
  logits.rank === 2 && targets.rank === 2 && targets.shape[1] === 1
    ? tf.reshape(targets, [targets.shape[0]])
    : targets;

const share: Metric = (targets, logits) =>
  tf.tidy(() => {
    const ids = tf.cast(asIds(targets, logits), 'int32');
    return tf.mean(tf.cast(tf.equal(tf.argMax(logits, -1), ids), 'float32'));
  });
// tfjs calls a metric by its function's name, which a minifier changes.
const accuracy: Metric = Object.defineProperty(share, 'name', {value: 'acc'});

/** tfjs's own 'accuracy' would compare the largest of the targets, without an error where B = T. */
function metricsOf(fn: string, given: ModelCompileArgs['metrics'] & {}): Metric[] {
  const list: unknown[] =
    Array.isArray(given) || typeof given !== 'object' ? [given].flat() : Object.values(given).flat();
  return list.map((metric) => {
    check(
      metric === 'accuracy' || metric === 'acc' || typeof metric === 'function',
      fn,
      () =>
        `expected metrics to be 'accuracy' or functions (targets, logits) => scalar; got ${show(metric)}.`,
    );
    return typeof metric === 'function' ? (metric as Metric) : accuracy;
  });
}
