import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {checkInteger, checkNumber, checkOptions, checkSignal} from '../src/errors';
import {batchAt, type TokenIds, toTokens} from './data';
import {nextTask} from './event_loop';
import {checkLanguageModel} from './language_model';
import {tokenLoss} from './token_loss';

/** Options of `evaluate`. */
export interface EvaluateOptions {
  /** Windows in one call of the model. Default 16. */
  batchSize?: number;
  /** T, tokens in one window. Default: the model's own length, else 128. */
  length?: number;
  /** At most this many windows, spread evenly over the data. Default: all. */
  maxWindows?: number;
  /** Mean characters of text in one token. Default 1: character-level tokens. */
  charactersPerToken?: number;
  /** Stops between two batches; the promise is then rejected with the signal's reason. */
  signal?: AbortSignal;
}

/** How well a model predicts tokens. */
export interface Evaluation {
  /** Mean cross entropy, nats per token. */
  loss: number;
  /** exp(loss). */
  perplexity: number;
  /** loss / (ln 2 * charactersPerToken). */
  bitsPerCharacter: number;
  /** How many predictions were averaged. */
  tokens: number;
}

const OPTIONS = ['batchSize', 'length', 'maxWindows', 'charactersPerToken', 'signal'];

export function evaluation(loss: number, tokens: number, charactersPerToken = 1): Evaluation {
  return {
    loss,
    perplexity: Math.exp(loss),
    bitsPerCharacter: loss / (Math.LN2 * charactersPerToken),
    tokens,
  };
}

/**
 * How well a language model predicts a token stream: the mean over windows side by side, with dropout off. What is left
 * after the last whole window does not count.
 *
 * @param model Ids [B,T] to logits [B,T,V].
 * @param data At least length + 1 token ids.
 *
 * ```js
 * const {loss, perplexity, bitsPerCharacter} = await training.evaluate(model, tokens, {length: 64});
 * ```
 *
 * @throws Error for models of another kind, ids outside the vocabulary, and unknown options.
 */
export async function evaluate(
  model: LayersModel,
  data: TokenIds,
  options: EvaluateOptions = {},
): Promise<Evaluation> {
  const fn = 'training.evaluate';
  checkOptions(fn, options, OPTIONS);
  const {vocabSize, fixedLength} = checkLanguageModel(fn, model);
  const {batchSize = 16, length = fixedLength ?? 128, charactersPerToken = 1, signal} = options;
  checkInteger(fn, 'batchSize', batchSize);
  checkInteger(fn, 'length', length);
  checkSignal(fn, signal);
  checkNumber(fn, 'charactersPerToken', charactersPerToken, {min: 0, exclusive: true});
  if (options.maxWindows !== undefined) {
    checkInteger(fn, 'maxWindows', options.maxWindows);
  }
  const tokens = toTokens(fn, 'data', data, length, vocabSize);
  return evaluateTokens(model, tokens, {
    batchSize,
    length,
    maxWindows: options.maxWindows ?? Number.POSITIVE_INFINITY,
    charactersPerToken,
    signal,
  });
}

/** `evaluate` after its checks. */
export async function evaluateTokens(
  model: LayersModel,
  tokens: Int32Array,
  options: {
    batchSize: number;
    length: number;
    maxWindows: number;
    charactersPerToken?: number;
    signal?: AbortSignal;
  },
): Promise<Evaluation> {
  const {batchSize, length, signal} = options;
  const whole = Math.floor((tokens.length - 1) / length);
  const count = Math.min(whole, options.maxWindows);
  const starts = Array.from({length: count}, (_, i) => Math.floor((i * whole) / count) * length);
  let total = 0;
  for (let first = 0; first < count; first += batchSize) {
    signal?.throwIfAborted();
    const batch = batchAt(tokens, starts.slice(first, first + batchSize), length);
    const shape: [number, number] = [batch.batchSize, length];
    const loss = tf.tidy(() => {
      const logits = model.apply(tf.tensor2d(batch.inputs, shape, 'int32'), {training: false}) as tf.Tensor;
      return tokenLoss(tf.tensor2d(batch.targets, shape, 'int32'), logits);
    });
    const [value] = await loss.data();
    loss.dispose();
    total += value * batch.batchSize;
    await nextTask();
  }
  return evaluation(total / count, count * length, options.charactersPerToken);
}
