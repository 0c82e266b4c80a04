import type * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {mixSeed} from '../src/random';
import type {Windows} from './data';
import {nextTask} from './event_loop';
import {addGradients, type LossAndGradients, lossGradients} from './gradients';

/** What one update is made from: sums over its micro-batches, in their order. */
export interface StepGradients {
  losses: number[];
  /** In the variables' order; the caller's. */
  sums: (tf.Tensor | null)[];
}

/** Where the gradients of a step come from: this thread, or several. */
export interface GradientSource {
  gradients(step: number): Promise<StepGradients>;
  dispose(): Promise<void>;
}

/** Micro-batch number `micro`, counted from the start of training: its windows and dropout masks depend on nothing else. */
export function microBatchGradients(
  model: LayersModel,
  variables: tf.Variable[],
  windows: Windows,
  micro: number,
  batchSize: number,
  seed: number,
): LossAndGradients {
  const batch = windows.batch(micro * batchSize, batchSize);
  return lossGradients(model, variables, batch, mixSeed(seed, micro, 3));
}

/** Computes all micro-batches here, one after another. */
export function localGradients(
  model: LayersModel,
  variables: tf.Variable[],
  windows: Windows,
  {accumulate, batchSize, seed}: {accumulate: number; batchSize: number; seed: number},
): GradientSource {
  return {
    async gradients(step) {
      const losses: number[] = [];
      let sums: (tf.Tensor | null)[] | null = null;
      for (let i = 0; i < accumulate; i++) {
        if (i > 0) {
          await nextTask();
        }
        const micro = step * accumulate + i;
        const {loss, gradients} = microBatchGradients(model, variables, windows, micro, batchSize, seed);
        sums = addGradients(sums, gradients);
        losses.push((await loss.data())[0]);
        loss.dispose();
      }
      return {losses, sums: sums ?? []};
    },
    async dispose() {},
  };
}
