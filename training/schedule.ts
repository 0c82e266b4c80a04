import {check, checkInteger, checkNumber, checkOneOf, checkOptions, show} from '../src/errors';

/** The shape of the way down. */
export type Decay = 'cosine' | 'linear' | 'constant';

export const DECAYS: readonly Decay[] = ['cosine', 'linear', 'constant'];

/** Options of `schedule`. */
export interface ScheduleOptions {
  /** Largest rate, reached at the end of the warm-up. */
  learningRate: number;
  /** Number of updates in the whole run. */
  steps: number;
  /** Updates over which the rate grows linearly. Default 0. */
  warmup?: number;
  /** What follows the warm-up. Default 'cosine'. */
  decay?: Decay;
  /** Rate at the last update, as a part of `learningRate`, in [0, 1]. Default 0.1. Not used by 'constant'. */
  floor?: number;
}

/**
 * A learning-rate schedule: the rate of update number `step` (0-based).
 *
 *     warm-up   learningRate (step + 1) / warmup                        step < warmup
 *     then      low + (learningRate - low) (1 + cos(pi p)) / 2          'cosine'
 *               low + (learningRate - low) (1 - p)                      'linear'
 *               learningRate                                            'constant'
 *
 * with p running from 0 at the first update after the warm-up to 1 at the last, and low = floor * learningRate.
 *
 * ```js
 * const rate = training.schedule({learningRate: 1e-3, steps: 1000, warmup: 100});
 * rate(0);    // 1e-5
 * rate(999);  // 1e-4
 * ```
 *
 * @throws Error for unknown options and values out of range.
 */
export function schedule(options: ScheduleOptions): (step: number) => number {
  const fn = 'training.schedule';
  checkOptions(fn, options, ['learningRate', 'steps', 'warmup', 'decay', 'floor']);
  const {learningRate, steps, warmup = 0, decay = 'cosine', floor = 0.1} = options;
  checkNumber(fn, 'learningRate', learningRate, {min: 0});
  checkInteger(fn, 'steps', steps);
  checkInteger(fn, 'warmup', warmup, 0);
  checkOneOf(fn, 'decay', decay, DECAYS);
  check(
    typeof floor === 'number' && floor >= 0 && floor <= 1,
    fn,
    () => `expected floor to be a number in [0, 1]; got ${show(floor)}.`,
  );
  return (step) => {
    if (step < warmup) {
      return (learningRate * (step + 1)) / warmup;
    }
    if (decay === 'constant') {
      return learningRate;
    }
    const last = steps - 1 - warmup;
    const p = last <= 0 ? 0 : Math.min(1, (step - warmup) / last);
    const left = decay === 'cosine' ? (1 + Math.cos(Math.PI * p)) / 2 : 1 - p;
    return learningRate * (floor + (1 - floor) * left);
  };
}
