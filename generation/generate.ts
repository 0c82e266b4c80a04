import type * as tfl from '@tensorflow/tfjs-layers';
import {check, checkInteger, checkOptions, checkSignal, show} from '../src/errors';
import {random} from '../src/random';
import {type Plan, planOf} from './plan';
import {checkSampling, type SamplingOptions, sampleToken} from './sampling';
import {openStream} from './stream';
import {readPrefill, type TokenInput} from './tokens';

/** What `generate` needs of a tokenizer; models.characterTokenizer makes one. */
export interface TextCodec {
  encode(text: string): ArrayLike<number>;
  decode(ids: number[]): string;
}

/** Options of `generate`. */
export interface GenerateOptions extends SamplingOptions {
  /** At most so many tokens. Default 256. */
  maxNewTokens?: number;
  /** The same seed gives the same tokens. Default 0. */
  seed?: number;
  /** Ids that end the text; they are not yielded. */
  stopTokens?: readonly number[];
  /** Ends the iteration, without an error, before the next token. */
  signal?: AbortSignal;
}

/** Options of `generate` when it writes text. */
export interface GenerateTextOptions extends GenerateOptions {
  /** Makes the prompt a text and what is yielded pieces of text. */
  tokenizer: TextCodec;
}

const OPTIONS = [
  'maxNewTokens',
  'temperature',
  'topK',
  'topP',
  'seed',
  'stopTokens',
  'signal',
  'tokenizer',
] as const;

/** The event loop gets a turn at least this often (ms), so that a page stays alive and a signal can arrive. */
const TURN = 20;
/** How decoders write the bytes of an unfinished character. */
const UNFINISHED = '\uFFFD';

/**
 * Tokens that continue a prompt, one after the other as they are made: ids, or text when a tokenizer is given.
 *
 * ```js
 * for await (const piece of generation.generate(model, 'Call me', {tokenizer, maxNewTokens: 100, temperature: 0.8})) {
 *   process.stdout.write(piece);
 * }
 * ```
 *
 * @param model as for `generation.stream`, with ids as input.
 * @param prompt at least one token: a text with a tokenizer; else a number, number[], Int32Array or int32 tensor.
 * @returns an iterator that owns a stream while it runs; ending it early (`break`, `return()`) frees that.
 * @throws at the call for wrong arguments and models that cannot stream; while iterating for logits that are NaN.
 */
export function generate(
  model: tfl.LayersModel,
  prompt: string,
  options: GenerateTextOptions,
): AsyncGenerator<string, void, undefined>;
export function generate(
  model: tfl.LayersModel,
  prompt: TokenInput,
  options?: GenerateOptions,
): AsyncGenerator<number, void, undefined>;
export function generate(
  model: tfl.LayersModel,
  prompt: string | TokenInput,
  options: GenerateOptions & {tokenizer?: TextCodec} = {},
): AsyncGenerator<number | string, void, undefined> {
  const fn = 'generation.generate';
  const plan = planOf(fn, model);
  check(plan.inputDim === null, fn, () => 'expected a model that takes ids; got one that takes vectors.');
  checkOptions(fn, options, OPTIONS);
  const {tokenizer, maxNewTokens = 256, seed = 0, stopTokens = [], signal} = options;
  checkInteger(fn, 'maxNewTokens', maxNewTokens, 0);
  checkInteger(fn, 'seed', seed, Number.MIN_SAFE_INTEGER);
  checkSampling(fn, options);
  check(
    Array.isArray(stopTokens) && stopTokens.every((id) => Number.isInteger(id)),
    fn,
    () => `expected stopTokens to be an array of ids; got ${show(stopTokens)}.`,
  );
  checkSignal(fn, signal);
  const ids = tokenizer === undefined ? prompt : encode(fn, tokenizer, prompt);
  const {values} = readPrefill(fn, ids as TokenInput, undefined, 1, plan);
  check(values.length > 0, fn, () => 'expected a prompt with a token that is not padding; got only id 0.');
  const tokens = tokensAfter(plan, Int32Array.from(values), {...options, maxNewTokens, seed, stopTokens});
  return tokenizer === undefined ? tokens : pieces(tokens, tokenizer);
}

function encode(fn: string, tokenizer: TextCodec, prompt: unknown): Int32Array {
  check(
    typeof tokenizer?.encode === 'function' && typeof tokenizer.decode === 'function',
    fn,
    () => `expected tokenizer to have encode and decode; got ${show(tokenizer)}.`,
  );
  check(
    typeof prompt === 'string' && prompt.length > 0,
    fn,
    () =>
      `expected prompt to be a text of at least one character, as a tokenizer is given; got ${show(prompt)}.`,
  );
  return Int32Array.from(tokenizer.encode(prompt));
}

async function* tokensAfter(
  plan: Plan,
  prompt: Int32Array,
  options: GenerateOptions & {maxNewTokens: number; seed: number; stopTokens: readonly number[]},
): AsyncGenerator<number, void, undefined> {
  const {maxNewTokens, seed, stopTokens, signal} = options;
  if (maxNewTokens === 0 || signal?.aborted) {
    return;
  }
  const rng = random(seed);
  const stream = openStream(plan, 1);
  try {
    let turn = Date.now();
    let logits = stream.prefill(prompt);
    for (let made = 0; ; ) {
      let values: ArrayLike<number>;
      try {
        values = await logits.data();
      } finally {
        logits.dispose();
      }
      if (Date.now() - turn >= TURN) {
        await new Promise((resolve) => setTimeout(resolve));
        turn = Date.now();
      }
      if (signal?.aborted) {
        return;
      }
      const id = sampleToken('generation.generate', values, options, rng);
      if (stopTokens.includes(id)) {
        return;
      }
      yield id;
      if (++made === maxNewTokens || signal?.aborted) {
        return;
      }
      logits = stream.step(id);
    }
  } finally {
    stream.dispose();
  }
}

/** Text as soon as it is complete: a character may take several tokens. */
async function* pieces(
  tokens: AsyncGenerator<number, void, undefined>,
  tokenizer: TextCodec,
): AsyncGenerator<string, void, undefined> {
  let pending: number[] = [];
  for await (const id of tokens) {
    pending.push(id);
    const text = tokenizer.decode(pending);
    if (text !== '' && !text.endsWith(UNFINISHED)) {
      pending = [];
      yield text;
    }
  }
  if (pending.length > 0) {
    yield tokenizer.decode(pending);
  }
}
