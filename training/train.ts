import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {fail} from '../src/errors';
import {wasmTraining} from '../src/patches/wasm_training';
import {mixSeed} from '../src/random';
import {trainableVariables} from '../src/tfjs';
import {AdamW} from './adam_w';
import {applyCheckpoint, checkFits, decodeCheckpoint, encodeCheckpoint, type RunIdentity} from './checkpoint';
import {type NamedStore, toStore} from './checkpoint_store';
import {globalNorm} from './clipping';
import {crc32} from './crc32';
import {type TrainingData, Windows} from './data';
import {type Evaluation, evaluateTokens} from './evaluate';
import {nextTask} from './event_loop';
import {type GradientSource, localGradients, type StepGradients} from './gradient_source';
import type {TrainingEvent} from './progress';
import {redrawAfter} from './redraw_schedule';
import {schedule} from './schedule';
import {type ResolvedTraining, resolveTraining, type TrainOptions} from './train_options';
import {workerGradients} from './workers';

/** One step of a run. */
export interface TrainingRecord {
  /** 1 for the first. */
  step: number;
  /** Mean cross entropy, nats per token. */
  loss: number;
  /** Of this update. */
  learningRate: number;
  /** Before clipping. */
  gradientNorm: number;
  /** Where it was measured after this step. */
  validation?: Evaluation;
}

/** What `train` returns. */
export interface TrainingResult {
  /** Updates done, with those before a resume. */
  step: number;
  /** 'finished', or 'aborted' by the signal. */
  stopped: 'finished' | 'aborted';
  /** Training loss of the last step; NaN when this call made none. */
  loss: number;
  /** The last measure, over all validation tokens unless aborted; null without validation tokens. */
  validation: Evaluation | null;
  /** The steps of this call. */
  history: TrainingRecord[];
  /** Of this call. */
  seconds: number;
  tokensPerSecond: number;
}

/** A measure during training takes at most this many batches; the last one takes all. */
const VALIDATION_BATCHES = 8;

const FN = 'training.train';

/**
 * Trains a language model on a token stream with AdamW: warm-up and decay, clipping, accumulation, validation,
 * checkpoints. The model's weights are changed in place.
 *
 * The same seed, data and options give the same weights, on one backend bit for bit; a run that was stopped and resumed
 * too, for dropout in this package's layers and in tf.layers.dropout. A NaN or Inf in the loss or in a gradient is an
 * error before the update: the weights, and the checkpoint, stay those of the last good step. On the wasm backend it
 * applies `patches.wasmTraining`.
 *
 * @param model Ids [B,T] to logits [B,T,V], such as `models.transformer`.
 * @param data Token ids, or {train, validation}.
 * @throws Error for bad options, unusable files and divergence; see the options.
 *
 * ```js
 * const {loss, validation} = await training.train(model, tokens, {
 *   steps: 500, batchSize: 16, length: 64, validation: 0.1, checkpoint: 'run/checkpoint.bin',
 *   onProgress: ({step, loss}) => console.log(step, loss),
 * });
 * ```
 */
export async function train(
  model: LayersModel,
  data: TrainingData,
  options: TrainOptions,
): Promise<TrainingResult> {
  const run = resolveTraining(FN, model, data, options);
  const store = options.checkpoint === undefined ? null : toStore(FN, 'checkpoint', options.checkpoint);
  const {resume = false} = options;
  const source = resume === true ? store : resume === false ? null : toStore(FN, 'resume', resume);
  store?.prepare();
  wasmTraining();

  const variables = trainableVariables(model);
  const optimizer = new AdamW({learningRate: 0, weightDecay: run.weightDecay});
  const identity = identityOf(run);
  try {
    const start = source === null ? 0 : await restore(source, model, optimizer, variables, identity);
    const windowSeed = mixSeed(run.seed, 4);
    const windows = new Windows(run.train, run.length, windowSeed);
    const gradients =
      run.workers === 1
        ? localGradients(model, variables, windows, run)
        : await workerGradients(model, variables, windows, {...run, windowSeed, tokens: run.train});
    try {
      const kept = source !== null && source === store ? start : -1;
      const loop = new Loop(model, optimizer, variables, gradients, run, store, identity, kept);
      return await loop.run(start);
    } finally {
      await gradients.dispose();
    }
  } finally {
    optimizer.dispose();
  }
}

function identityOf({seed, batchSize, length, accumulate, train: tokens}: ResolvedTraining): RunIdentity {
  const bytes = new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
  return {seed, batchSize, length, accumulate, dataLength: tokens.length, dataChecksum: crc32(bytes)};
}

async function restore(
  source: NamedStore,
  model: LayersModel,
  optimizer: AdamW,
  variables: tf.Variable[],
  identity: RunIdentity,
): Promise<number> {
  const bytes = await source.load();
  if (bytes === null) {
    fail(FN, `there is no checkpoint to resume from at ${source.name}.`);
  }
  const what = `the checkpoint ${source.name}`;
  const checkpoint = decodeCheckpoint(FN, what, bytes);
  checkFits(FN, what, checkpoint, model, variables, identity);
  await applyCheckpoint(checkpoint, model, optimizer, variables);
  return checkpoint.step;
}

/** The loop over steps, and what happens between them. */
class Loop {
  private readonly rate: (step: number) => number;
  private readonly history: TrainingRecord[] = [];
  private validation: Evaluation | null = null;
  private failure: Error | null = null;

  constructor(
    private readonly model: LayersModel,
    private readonly optimizer: AdamW,
    private readonly variables: tf.Variable[],
    private readonly source: GradientSource,
    private readonly options: ResolvedTraining,
    private readonly store: NamedStore | null,
    private readonly identity: RunIdentity,
    /** The step of this run's checkpoint that is in the store; -1 when none is. */
    private saved: number,
  ) {
    const {learningRate, steps, warmup, decay} = options;
    this.rate = schedule({learningRate, steps, warmup, decay});
  }

  async run(start: number): Promise<TrainingResult> {
    const {steps, batchSize, length, accumulate, every, signal, onProgress} = this.options;
    const began = performance.now();
    // Time of training alone, for tokens per second: validation and checkpoints are not tokens trained on.
    let training = 0;
    let step = start;
    while (step < steps && !signal?.aborted) {
      const before = performance.now();
      const record = await this.step(step);
      training += performance.now() - before;
      step += 1;
      this.history.push(record);
      const events: TrainingEvent[] = [];
      const last = step === steps;
      if (step % every === 0 || last) {
        await this.measure(record, last, events);
        await this.save(step, events);
      }
      const done = step - start;
      onProgress({
        step,
        steps,
        loss: record.loss,
        bitsPerCharacter: record.loss / Math.LN2,
        learningRate: record.learningRate,
        gradientNorm: record.gradientNorm,
        tokensPerSecond: (done * batchSize * length * accumulate * 1000) / training,
        secondsLeft: (((performance.now() - began) / done) * (steps - step)) / 1000,
        validation: this.validation,
        events,
      });
      await nextTask();
    }
    await this.finish(step, start);
    const tokens = (step - start) * batchSize * length * accumulate;
    return {
      step,
      stopped: step < steps ? 'aborted' : 'finished',
      loss: this.history.at(-1)?.loss ?? Number.NaN,
      validation: this.validation,
      history: this.history,
      seconds: (performance.now() - began) / 1000,
      tokensPerSecond: tokens === 0 ? 0 : (tokens * 1000) / training,
    };
  }

  /** One update. Throws before it when anything is not finite. */
  private async step(index: number): Promise<TrainingRecord> {
    const {accumulate, clipNorm, redraw} = this.options;
    if (redraw !== null) {
      // Not after the step before: its checkpoint is from before the drawing, and so is a run resumed from it.
      redrawAfter(this.model, redraw, index);
    }
    const {losses, sums} = await this.source.gradients(index);
    try {
      const loss = losses.reduce((a, b) => a + b, 0) / accumulate;
      const present = sums.filter((sum) => sum !== null);
      const normTensor = globalNorm(present);
      const norm = (await normTensor.data())[0] / accumulate;
      normTensor.dispose();
      this.checkFinite(index, 'loss', loss);
      this.checkFinite(index, "gradient's norm", norm);
      const learningRate = this.rate(index);
      const clip = clipNorm > 0 && norm > clipNorm ? clipNorm / norm : 1;
      this.update({losses, sums}, learningRate, clip / accumulate);
      return {step: index + 1, loss, learningRate, gradientNorm: norm};
    } finally {
      tf.dispose(sums.filter((sum) => sum !== null));
    }
  }

  private update({sums}: StepGradients, learningRate: number, factor: number): void {
    this.optimizer.learningRate = learningRate;
    tf.tidy(() => {
      const named = this.variables.flatMap(({name}, i) => {
        const sum = sums[i];
        return sum === null ? [] : [{name, tensor: factor === 1 ? sum : tf.mul(sum, factor)}];
      });
      this.optimizer.applyGradients(named);
    });
  }

  private checkFinite(index: number, what: string, value: number): void {
    if (!Number.isFinite(value)) {
      const kept =
        this.store === null || this.saved < 0
          ? ''
          : ` The checkpoint at ${this.store.name} is of the last good one saved.`;
      fail(
        FN,
        `the ${what} is ${value} in step ${index + 1}; training stopped before that update, so the weights are those ` +
          `after step ${index}.${kept} A lower learningRate, a longer warmup or a clipNorm may help.`,
      );
    }
  }

  private async measure(record: TrainingRecord, last: boolean, events: TrainingEvent[]): Promise<void> {
    const {validation, batchSize, length, signal} = this.options;
    if (validation === null) {
      return;
    }
    const maxWindows = last ? Number.POSITIVE_INFINITY : VALIDATION_BATCHES * batchSize;
    try {
      this.validation = await evaluateTokens(this.model, validation, {batchSize, length, maxWindows, signal});
    } catch (error) {
      if (signal?.aborted) {
        return;
      }
      throw error;
    }
    record.validation = this.validation;
    events.push({kind: 'validation', evaluation: this.validation});
  }

  /** A failure is kept for the end: the next checkpoint may succeed, and the weights are still in memory. */
  private async save(step: number, events: TrainingEvent[]): Promise<void> {
    if (this.store === null) {
      return;
    }
    try {
      await this.store.save(
        await encodeCheckpoint(this.model, this.optimizer, this.variables, step, this.identity),
      );
      this.saved = step;
      this.failure = null;
      events.push({kind: 'checkpoint', where: this.store.name});
    } catch (error) {
      this.failure = error as Error;
      events.push({kind: 'checkpoint-failed', where: this.store.name, error: error as Error});
    }
  }

  private async finish(step: number, start: number): Promise<void> {
    if (step > start && this.saved !== step) {
      await this.save(step, []);
    }
    if (this.failure !== null) {
      fail(
        FN,
        `${step} steps are done and the model has their weights, but the checkpoint could not be written: ` +
          this.failure.message,
      );
    }
  }
}
