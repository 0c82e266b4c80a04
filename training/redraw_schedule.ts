import type {LayersModel} from '@tensorflow/tfjs-layers';
import {redrawFeatures} from '../layers/redraw';
import {checkInteger, checkOptions} from '../src/errors';
import {mixSeed} from '../src/random';

/** Options of `redrawSchedule`. */
export interface RedrawOptions {
  /** Steps between two drawings. */
  every: number;
  /** Default 0. */
  seed?: number;
  /** No drawing at this step and later: the last steps settle on directions that stay. Default: none. */
  until?: number;
}

/** Both methods mean "a training step is done"; they may be handed on without their object. */
export interface RedrawSchedule {
  /** For `training.train`: onProgress: ({step}) => schedule.onStep(step). Step 1 is the first. */
  onStep(step: number): void;
  /** For model.fit: callbacks: schedule. Counts batches over all epochs. */
  onBatchEnd(): Promise<void>;
}

/**
 * Draws FAVOR+ directions anew every so many training steps (Choromanski et al. 2021, section 4.2: redrawn features
 * help training). Evaluation, saving and streams use those drawn last. `training.train` with `workers` above 1 hands on
 * trainable weights only, so its workers would go on with the old directions: use one. A checkpoint is written before a
 * drawing at the same step: after a resume from step n, call `onStep(n)` first, which draws the same directions again.
 *
 * ```js
 * const redraw = training.redrawSchedule(model, {every: 100, until: 900});
 * await training.train(model, tokens, {steps: 1000, onProgress: ({step}) => redraw.onStep(step)});
 * ```
 *
 * @throws Error for bad options; later, when the model has no layer with random features.
 */
export function redrawSchedule(model: LayersModel, options: RedrawOptions): RedrawSchedule {
  const fn = 'training.redrawSchedule';
  checkOptions(fn, options ?? null, ['every', 'seed', 'until']);
  const {every, seed = 0, until = Number.MAX_SAFE_INTEGER} = options;
  checkInteger(fn, 'every', every);
  checkInteger(fn, 'seed', seed, Number.MIN_SAFE_INTEGER);
  checkInteger(fn, 'until', until);
  let batches = 0;
  const onStep = (step: number): void => {
    if (step % every === 0 && step < until) {
      redrawFeatures(model, mixSeed(seed, step));
    }
  };
  return {
    onStep,
    onBatchEnd: async () => {
      batches += 1;
      onStep(batches);
    },
  };
}
