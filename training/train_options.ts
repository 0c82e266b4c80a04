import type {LayersModel} from '@tensorflow/tfjs-layers';
import {redrawable} from '../layers/redraw';
import {check, checkInteger, checkNumber, checkOneOf, checkOptions, checkSignal, show} from '../src/errors';
import type {CheckpointStore} from './checkpoint_store';
import {prepareData, type TokenIds} from './data';
import {checkLanguageModel} from './language_model';
import type {TrainingProgress} from './progress';
import {checkRedraw, type RedrawOptions} from './redraw_schedule';
import {DECAYS, type Decay} from './schedule';

/** Options of `train`. */
export interface TrainOptions {
  /**
   * Updates in the whole run; a resumed run counts those done before. The learning rate's schedule ends with them: stop
   * early by `signal`, and resume with the same number.
   */
  steps: number;
  /** Windows in one micro-batch. Default 16. */
  batchSize?: number;
  /** T, tokens in one window. Default: the model's own length, else 128. */
  length?: number;
  /** Largest learning rate. Default 1e-3. */
  learningRate?: number;
  /** Updates over which the rate grows from 0; below 1: that part of `steps`. Default: steps / 10, at most 100. */
  warmup?: number;
  /** What the rate does after the warm-up, down to a tenth at the end. Default 'cosine'. */
  decay?: Decay;
  /** Decoupled weight decay of matrices (see `adamW`). Default 0.01. */
  weightDecay?: number;
  /** Largest global norm of an update's gradient; 0: no clipping. Default 1. */
  clipNorm?: number;
  /** Micro-batches whose gradients are averaged for one update. Default 1, or `workers`. */
  accumulate?: number;
  /** Tokens to measure on, or a fraction of the data to keep out for it. Default: none, or `data.validation`. */
  validation?: TokenIds | number;
  /** Steps between two validations, and between two checkpoints. Default 100. Both also happen at the end. */
  every?: number;
  /** File or folder (Node), or an object with save and load: where the state is kept for `resume`. */
  checkpoint?: string | CheckpointStore;
  /** True: continue from `checkpoint`. A path or an object: continue from that one. Default false. */
  resume?: boolean | string | CheckpointStore;
  /** Of the order of windows and of dropout. Default 0. */
  seed?: number;
  /** Stops after the current step; what was done is returned, and kept in `checkpoint`. */
  signal?: AbortSignal;
  /** Called after each step. An error in it stops training. */
  onProgress?: (progress: TrainingProgress) => void;
  /**
   * Threads that share the micro-batches (Node). Default 1: this one. `accumulate` must be a multiple. The others are on
   * the wasm backend; where this one is on another, a warning says so.
   */
  workers?: number;
  /**
   * New random directions for the layers with the map `favor`, every so many steps, as training.redrawSchedule draws
   * them. They are drawn before the next step, so that a resumed run has the same. Not with workers. Default: never.
   */
  redraw?: RedrawOptions;
}

const OPTIONS: readonly (keyof TrainOptions)[] = [
  'steps',
  'batchSize',
  'length',
  'learningRate',
  'warmup',
  'decay',
  'weightDecay',
  'clipNorm',
  'accumulate',
  'validation',
  'every',
  'checkpoint',
  'resume',
  'seed',
  'signal',
  'onProgress',
  'workers',
  'redraw',
];

/** The options with their defaults, and the data as typed arrays. */
export interface ResolvedTraining
  extends Required<
    Pick<
      TrainOptions,
      | 'steps'
      | 'batchSize'
      | 'length'
      | 'learningRate'
      | 'warmup'
      | 'decay'
      | 'weightDecay'
      | 'clipNorm'
      | 'accumulate'
      | 'every'
      | 'seed'
      | 'workers'
    >
  > {
  train: Int32Array;
  validation: Int32Array | null;
  signal: AbortSignal | undefined;
  onProgress: (progress: TrainingProgress) => void;
  redraw: Required<RedrawOptions> | null;
}

/** Checks everything that can be checked without touching the model's weights or any file. */
export function resolveTraining(
  fn: string,
  model: LayersModel,
  data: unknown,
  options: TrainOptions,
): ResolvedTraining {
  const {vocabSize, fixedLength} = checkLanguageModel(fn, model);
  checkOptions(fn, options, OPTIONS);
  check(options !== undefined, fn, () => 'expected options with steps; got undefined.');
  const {steps, workers = 1, onProgress = () => {}, signal} = options;
  checkInteger(fn, 'steps', steps);
  checkInteger(fn, 'workers', workers);
  const all = {
    steps,
    batchSize: options.batchSize ?? 16,
    length: options.length ?? fixedLength ?? 128,
    learningRate: options.learningRate ?? 1e-3,
    decay: options.decay ?? 'cosine',
    weightDecay: options.weightDecay ?? 0.01,
    clipNorm: options.clipNorm ?? 1,
    accumulate: options.accumulate ?? workers,
    every: options.every ?? 100,
    seed: options.seed ?? 0,
    workers,
  };
  for (const name of ['batchSize', 'length', 'accumulate', 'every'] as const) {
    checkInteger(fn, name, all[name]);
  }
  checkInteger(fn, 'seed', all.seed, Number.MIN_SAFE_INTEGER);
  checkNumber(fn, 'learningRate', all.learningRate, {min: 0, exclusive: true});
  checkNumber(fn, 'weightDecay', all.weightDecay, {min: 0});
  checkNumber(fn, 'clipNorm', all.clipNorm, {min: 0});
  checkOneOf(fn, 'decay', all.decay, DECAYS);
  check(
    fixedLength === null || all.length === fixedLength,
    fn,
    () => `expected length to be the model's own, ${fixedLength}; got ${all.length}.`,
  );
  check(
    all.accumulate % workers === 0,
    fn,
    () =>
      `expected accumulate (${all.accumulate}) to be a multiple of workers (${workers}): ` +
      'a worker takes whole micro-batches.',
  );
  check(
    typeof onProgress === 'function',
    fn,
    () => `expected onProgress to be a function; got ${show(onProgress)}.`,
  );
  checkSignal(fn, signal);
  const resume = options.resume ?? false;
  check(
    resume !== true || options.checkpoint !== undefined,
    fn,
    () => 'resume: true continues from checkpoint; give checkpoint, or a path as resume.',
  );
  return {
    ...all,
    warmup: warmupSteps(fn, options.warmup, steps),
    ...prepareData(fn, data, options.validation, all.length, vocabSize),
    signal,
    onProgress,
    redraw: redrawOf(fn, model, options.redraw, workers),
  };
}

function redrawOf(
  fn: string,
  model: LayersModel,
  options: RedrawOptions | undefined,
  workers: number,
): Required<RedrawOptions> | null {
  if (options === undefined) {
    return null;
  }
  const redraw = checkRedraw(`${fn}: redraw`, options);
  check(
    workers === 1,
    fn,
    () =>
      `expected workers to be 1 with redraw: the other threads would keep the old directions; got ${workers}.`,
  );
  check(
    redrawable(model).length > 0,
    fn,
    () => 'redraw was given, and the model has no LinearAttention layer with a random feature map.',
  );
  return redraw;
}

function warmupSteps(fn: string, warmup: number | undefined, steps: number): number {
  if (warmup === undefined) {
    return Math.min(100, Math.floor(steps / 10));
  }
  checkNumber(fn, 'warmup', warmup, {min: 0});
  if (warmup < 1) {
    return Math.round(warmup * steps);
  }
  checkInteger(fn, 'warmup', warmup);
  return warmup;
}
