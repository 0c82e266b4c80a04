import type {LayersModel} from '@tensorflow/tfjs-layers';
import {redrawFeatures} from '../layers/redraw';
import {checkInteger, checkOptions} from '../src/errors';
import {mixSeed} from '../src/random';

/** When directions are drawn anew. */
export interface RedrawOptions {
  /** Steps between two drawings. */
  every: number;
  /** Default 0. */
  seed?: number;
  /** No drawing at this step and later: the last steps settle on directions that stay. Default: none. */
  until?: number;
}

/** The options, checked, with their defaults. */
export function checkRedraw(fn: string, options: RedrawOptions): Required<RedrawOptions> {
  checkOptions(fn, options ?? null, ['every', 'seed', 'until']);
  const {every, seed = 0, until = Number.MAX_SAFE_INTEGER} = options;
  checkInteger(fn, 'every', every);
  checkInteger(fn, 'seed', seed, Number.MIN_SAFE_INTEGER);
  checkInteger(fn, 'until', until);
  return {every, seed, until};
}

/** Draws if it is time after that many steps. The same step gives the same directions, however often it is asked. */
export function redrawAfter(
  model: LayersModel,
  {every, seed, until}: Required<RedrawOptions>,
  step: number,
): void {
  if (step > 0 && step % every === 0 && step < until) {
    redrawFeatures(model, mixSeed(seed, step));
  }
}

/** Both methods mean "a training step is done"; they may be handed on without their object. */
export interface RedrawSchedule {
  /** For a training loop of your own. Step 1 is the first. */
  onStep(step: number): void;
  /** For model.fit: callbacks: schedule. Counts batches over all epochs. */
  onBatchEnd(): Promise<void>;
}

/**
 * Draws FAVOR+ directions anew every so many training steps (Choromanski et al. 2021, section 4.2: redrawn features
 * help training), for `model.fit` and loops of your own. Evaluation, saving and streams use those drawn last.
 * `training.train` has an option `redraw` of the same fields, which a resumed run obeys too.
 *
 * ```js
 * training.compile(model, {optimizer: training.adamW()});
 * await model.fit(inputs, targets, {callbacks: training.redrawSchedule(model, {every: 100, until: 900})});
 * ```
 *
 * @throws Error for bad options; later, when the model has no layer with random features.
 */
export function redrawSchedule(model: LayersModel, options: RedrawOptions): RedrawSchedule {
  const checked = checkRedraw('training.redrawSchedule', options);
  let batches = 0;
  const onStep = (step: number): void => redrawAfter(model, checked, step);
  return {
    onStep,
    onBatchEnd: async () => {
      batches += 1;
      onStep(batches);
    },
  };
}
