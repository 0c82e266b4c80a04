import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import type {StreamState} from '../layers/streaming';
import {check, checkInteger, checkOptions} from '../src/errors';
import {type Plan, planOf} from './plan';
import {type Batch, runPlan} from './run_plan';
import {bytesOf, cloneStates, disposeStates, keepStates} from './stream_state';
import {readPrefill, readStep, type TokenInput, type Tokens} from './tokens';

/** Options of `stream`. */
export interface StreamOptions {
  /** B, the number of sequences that run side by side. Default 1. */
  batchSize?: number;
}

/** Options of a stream's `prefill`. */
export interface PrefillOptions {
  /** [B,T]; 0 where a token is padding: it leaves its row's state and position as they were. */
  mask?: TokenInput;
}

/**
 * A model that reads tokens as they come. Made by `stream`; holds the layers' states until `dispose`.
 *
 * Ids are a number, an array, a typed array or an int32 tensor: [T] for a batch of 1, or [B,T] (`step`: [B]). A model
 * of vectors takes float tensors or nested arrays with a last axis more.
 *
 * An error leaves a stream as it was.
 */
export class Stream {
  /** Tokens read so far in each row, padding not counted. */
  private counts: Int32Array;
  private disposed = false;
  /** The logits returned last, for rows that get no token. */
  private latest: tf.Tensor2D | null = null;

  constructor(
    private readonly plan: Plan,
    readonly batchSize: number,
    private states: StreamState[],
  ) {
    this.counts = new Int32Array(batchSize);
    keepStates(states);
  }

  /** Tokens read so far, padding not counted; of the longest row. */
  get position(): number {
    this.checkAlive('position');
    return this.counts.reduce((a, b) => Math.max(a, b), 0);
  }

  /** The same for each row. */
  get positions(): number[] {
    this.checkAlive('positions');
    return [...this.counts];
  }

  /** Size of the states. Constant for linear attention, growing with every token for softmax attention. */
  get stateBytes(): number {
    this.checkAlive('stateBytes');
    return bytesOf(this.states);
  }

  /**
   * Reads T >= 1 tokens at once, at the start or later.
   *
   * @returns logits [B,V] of each row's last token, the caller's tensor. A row that got padding only: its logits from
   *   before (0 if there were none).
   */
  prefill(ids: TokenInput, options: PrefillOptions = {}): tf.Tensor2D {
    const fn = 'stream.prefill';
    this.checkAlive('prefill');
    checkOptions(fn, options, ['mask']);
    return this.read(readPrefill(fn, ids, options.mask, this.batchSize, this.plan));
  }

  /** Reads one token per row. @returns logits [B,V], the caller's tensor. */
  step(ids: TokenInput): tf.Tensor2D {
    this.checkAlive('step');
    return this.read(readStep('stream.step', ids, this.batchSize, this.plan));
  }

  /** A stream that goes on from here by itself; this one stays as it is. Dispose both. */
  fork(): Stream {
    this.checkAlive('fork');
    const fork = new Stream(this.plan, this.batchSize, cloneStates(this.states));
    fork.counts = this.counts.slice();
    fork.latest = this.latest === null ? null : tf.keep(tf.clone(this.latest));
    return fork;
  }

  /** Frees everything. Using the stream afterwards is an error; disposing it again is not. */
  dispose(): void {
    if (!this.disposed) {
      this.disposed = true;
      disposeStates(this.states);
      this.latest?.dispose();
    }
  }

  private read({values, length, counts: added}: Tokens): tf.Tensor2D {
    const before = this.states;
    const {plan, batchSize, counts} = this;
    let after = before;
    const [logits, latest] = tf.tidy(() => {
      let logits = this.latest ?? (tf.zeros([batchSize, plan.outputDim]) as tf.Tensor2D);
      if (length > 0) {
        const shape = [batchSize, length, ...(plan.inputDim === null ? [] : [plan.inputDim])];
        const x = tf.tensor(values, shape, plan.inputDim === null ? 'int32' : 'float32');
        const result = runPlan(plan, {x, ...placesOf(counts, added, length)}, before);
        keepStates(result.states);
        after = result.states;
        // Rows that got no token keep the logits they had.
        logits = added.includes(0) ? tf.where(anyOf(added), result.logits, logits) : result.logits;
      }
      return [tf.clone(logits), tf.keep(tf.clone(logits))];
    });
    this.states = after;
    disposeStates(before, after);
    this.latest?.dispose();
    this.latest = latest;
    this.counts = counts.map((count, row) => count + added[row]);
    return logits;
  }

  private checkAlive(what: string): void {
    check(!this.disposed, `stream.${what}`, () => 'this stream was disposed.');
  }
}

/** [B,1], true where a row got tokens. */
function anyOf(added: Int32Array): tf.Tensor2D {
  return tf.tensor2d(
    Uint8Array.from(added, (n) => (n > 0 ? 1 : 0)),
    [added.length, 1],
    'bool',
  );
}

/** Positions of the next tokens, each row's last one, and the mask where rows got fewer than `length`. */
function placesOf(counts: Int32Array, added: Int32Array, length: number): Omit<Batch, 'x'> {
  const full = added.every((n) => n === length);
  if (full && counts.every((count) => count === counts[0])) {
    return {positions: counts[0], last: length - 1};
  }
  const positions = new Int32Array(counts.length * length);
  const kept = new Float32Array(counts.length * length);
  counts.forEach((count, row) => {
    for (let t = 0; t < length; t++) {
      // Padding stands where the last token does, so that it is never past the last position allowed.
      positions[row * length + t] = Math.max(0, count + Math.min(t, added[row] - 1));
      kept[row * length + t] = t < added[row] ? 1 : 0;
    }
  });
  const last = added.map((n) => Math.max(0, n - 1));
  return {positions, last, ...(full ? {} : {mask: tf.tensor2d(kept, [counts.length, length])})};
}

/**
 * Makes a model read token by token, in time and memory that do not depend on how many tokens came before (linear
 * attention; softmax attention keeps every key and value).
 *
 * Any functional model will do whose layers are attention layers with causal: true, layers that act on each position
 * alone (own classes say `static timewise = true`), merges and nested models of such layers. The weights stay the
 * model's: training it further changes what its streams say.
 *
 * ```js
 * const stream = generation.stream(model);
 * let logits = stream.prefill([5, 3, 8]);   // [1, V]
 * const id = tf.tidy(() => tf.argMax(logits, 1).dataSync()[0]);
 * logits.dispose();
 * logits = stream.step(id);
 * stream.dispose();
 * ```
 *
 * @throws naming the layer, when a layer cannot run token by token.
 */
export function stream(model: tfl.LayersModel, options: StreamOptions = {}): Stream {
  const fn = 'generation.stream';
  checkOptions(fn, options, ['batchSize']);
  const {batchSize = 1} = options;
  checkInteger(fn, 'batchSize', batchSize);
  return openStream(planOf(fn, model), batchSize);
}

/** A stream of a model that was planned before. */
export function openStream(plan: Plan, batchSize: number): Stream {
  const states = tf.tidy(() => plan.streaming.map((layer) => layer.streamState(batchSize)));
  return new Stream(plan, batchSize, states);
}
