/** Compiling what a model or a call needs before it is needed. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {check, checkInteger, checkOptions, show} from '../src/errors';
import {compilationOf} from '../src/tfjs_compile';
import {type Task, tasksOfModel, tasksOfShapes, type WarmupShapes, type WarmupUse} from './warmup_tasks';

/** How far `warmup` is. */
export interface WarmupProgress {
  /** First GPU programs are compiled, then everything runs once. */
  phase: 'compile' | 'run';
  /** Programs compiled, or runs done. */
  done: number;
  total: number;
}

/** Options of `warmup`. */
export interface WarmupOptions {
  /**
   * What will be done: 'predict' (a call, model.predict), 'stream' (prefill and step), 'train' (gradients). Default
   * ['predict', 'stream'], the latter where it is possible.
   */
  uses?: readonly WarmupUse[];
  /** Of a model's inputs. Default 1. */
  batchSize?: number;
  /** Tokens, where a model's inputs leave the length open. Default 16. */
  length?: number;
  onProgress?: (progress: WarmupProgress) => void;
}

/** What `warmup` did. */
export interface WarmupResult {
  /** GPU programs that were compiled. */
  programs: number;
  seconds: number;
}

const FN = 'warmup';
const USES: readonly WarmupUse[] = ['predict', 'stream', 'train'];
const SHAPES = [
  'batchSize',
  'numHeads',
  'length',
  'keyLength',
  'keyDim',
  'valueDim',
  'causal',
  'featureMap',
  'normalize',
  'dataFormat',
];

/**
 * Compiles the GPU programs that a model, or linearAttention calls of these shapes, will need, and runs everything once,
 * so that the first real call does not wait for it. The webgl and webgpu backends compile in parallel and in the
 * background; on the others, which compile nothing, one run of each remains. Weights are not changed.
 *
 * Do not use the backend for anything else until the promise is fulfilled.
 *
 * @param target A LayersModel, or {keyDim, valueDim, numHeads, ...}, or an array of such shapes.
 * @throws Error for wrong arguments, before anything runs.
 *
 * ```js
 * await tfla.warmup(model, {batchSize: 1, length: 64, onProgress: ({phase, done, total}) => bar(phase, done / total)});
 * await tfla.warmup({numHeads: 8, keyDim: 64, causal: true}, {uses: ['predict', 'train']});
 * ```
 */
export async function warmup(
  target: tfl.LayersModel | WarmupShapes | readonly WarmupShapes[],
  options: WarmupOptions = {},
): Promise<WarmupResult> {
  checkOptions(FN, options, ['uses', 'batchSize', 'length', 'onProgress']);
  const {uses, onProgress = () => {}} = options;
  check(
    uses === undefined || (Array.isArray(uses) && uses.every((use) => USES.includes(use))),
    FN,
    () => `expected uses to be an array of 'predict', 'stream', 'train'; got ${show(uses)}.`,
  );
  check(
    typeof onProgress === 'function',
    FN,
    () => `expected onProgress to be a function; got ${show(onProgress)}.`,
  );
  await tf.ready();
  const tasks = tasksOf(target, options);
  const started = tf.util.now();
  const programs = await compileAhead(tasks, onProgress);
  for (const [i, task] of tasks.entries()) {
    const results = tf.tidy(task.run);
    await Promise.all(results.map((x) => x.data()));
    tf.dispose(results);
    onProgress({phase: 'run', done: i + 1, total: tasks.length});
    await pause();
  }
  return {programs, seconds: (tf.util.now() - started) / 1000};
}

function tasksOf(
  target: tfl.LayersModel | WarmupShapes | readonly WarmupShapes[],
  options: WarmupOptions,
): Task[] {
  const {uses = ['predict', 'stream'], batchSize = 1, length = 16} = options;
  checkInteger(FN, 'batchSize', batchSize);
  checkInteger(FN, 'length', length);
  if (target instanceof tfl.LayersModel) {
    return tasksOfModel(target, uses, {batchSize, length, optional: options.uses === undefined});
  }
  const list: readonly WarmupShapes[] = Array.isArray(target) ? target : [target];
  for (const shapes of list) {
    check(
      shapes !== null && typeof shapes === 'object' && 'keyDim' in shapes,
      FN,
      () => `expected a LayersModel, or shapes {keyDim, ...}; got ${show(shapes)}.`,
    );
    checkOptions(FN, shapes, SHAPES, 'shapes');
    for (const name of ['batchSize', 'numHeads', 'length', 'keyLength', 'keyDim', 'valueDim'] as const) {
      if (shapes[name] !== undefined) {
        checkInteger(FN, `shapes.${name}`, shapes[name]);
      }
    }
  }
  return list.flatMap((shapes) => tasksOfShapes(shapes, uses));
}

/** Returns how many programs there were to compile. */
async function compileAhead(
  tasks: readonly Task[],
  onProgress: (progress: WarmupProgress) => void,
): Promise<number> {
  const compilation = compilationOf(tf.backend());
  if (compilation === null) {
    return 0;
  }
  for (const task of tasks) {
    compilation.only(() => {
      try {
        tf.tidy(() => void task.run());
      } catch {
        // Ops that read values find none here. The run that follows compiles what is missing, and throws what is wrong.
      }
    });
    await pause();
  }
  const pending = compilation.pending();
  const total = pending.length;
  let done = 0;
  onProgress({phase: 'compile', done, total});
  await Promise.allSettled(
    pending.map(async (program) => {
      await program;
      onProgress({phase: 'compile', done: ++done, total});
    }),
  );
  compilation.finish();
  return total;
}

/** Lets the page draw and handle events. */
const pause = () => new Promise((resolve) => setTimeout(resolve, 0));
