/** Token streams as training data: splitting, checking, and cutting into shuffled windows. */
import {check, show} from '../src/errors';
import {mixSeed, permutation, random} from '../src/random';

/** Ids of tokens, in the text's order. */
export type TokenIds = Int32Array | Uint8Array | Uint16Array | Uint32Array | readonly number[];

/** A token stream, or one for training and one for validation. */
export type TrainingData = TokenIds | {train: TokenIds; validation?: TokenIds};

export interface PreparedData {
  train: Int32Array;
  /** Null when there is none. */
  validation: Int32Array | null;
}

function isTokens(x: unknown): x is TokenIds {
  return (
    Array.isArray(x) ||
    x instanceof Int32Array ||
    x instanceof Uint8Array ||
    x instanceof Uint16Array ||
    x instanceof Uint32Array
  );
}

/** Checks ids and copies them; each must be a whole number in [0, vocabSize). */
export function toTokens(
  fn: string,
  name: string,
  x: unknown,
  length: number,
  vocabSize: number | null,
): Int32Array {
  check(
    isTokens(x),
    fn,
    () => `expected ${name} to be an Int32Array or an array of token ids; got ${show(x)}.`,
  );
  const bound = vocabSize ?? 2 ** 31;
  for (let i = 0; i < x.length; i++) {
    check(
      Number.isInteger(x[i]) && x[i] >= 0 && x[i] < bound,
      fn,
      () =>
        `expected ${name}[${i}] to be a token id in [0, ${bound}), the model's vocabulary; got ${show(x[i])}.`,
    );
  }
  check(
    x.length > length,
    fn,
    () =>
      `expected ${name} to hold at least length + 1 = ${length + 1} tokens (a window and the token after it); ` +
      `got ${x.length}.`,
  );
  return Int32Array.from(x);
}

/**
 * Splits data into training and validation tokens.
 *
 * @param validation Tokens; or a fraction in (0, 1): that last part of the data is kept out of training.
 */
export function prepareData(
  fn: string,
  data: unknown,
  validation: unknown,
  length: number,
  vocabSize: number | null,
): PreparedData {
  const pair = data as {train?: unknown; validation?: unknown};
  const isPair = data !== null && typeof data === 'object' && !isTokens(data) && 'train' in data;
  check(
    isPair || isTokens(data),
    fn,
    () => `expected data to be token ids or {train, validation}; got ${show(data)}.`,
  );
  check(
    !isPair || pair.validation === undefined || validation === undefined,
    fn,
    () => 'expected validation either in data or in the options; got both.',
  );
  const held = isPair && pair.validation !== undefined ? pair.validation : validation;
  const [trainName, heldName] = isPair ? ['data.train', 'data.validation'] : ['data', 'validation'];
  if (typeof held !== 'number') {
    return {
      train: toTokens(fn, trainName, isPair ? pair.train : data, length, vocabSize),
      validation:
        held === undefined || held === null ? null : toTokens(fn, heldName, held, length, vocabSize),
    };
  }
  check(
    held > 0 && held < 1,
    fn,
    () => `expected validation to be token ids or a fraction in (0, 1); got ${held}.`,
  );
  const all = toTokens(fn, trainName, isPair ? pair.train : data, length, vocabSize);
  const cut = Math.floor(all.length * (1 - held));
  const rest = all.length - cut;
  check(
    cut > length && rest > length,
    fn,
    () =>
      `expected more data: a validation fraction of ${held} splits ${all.length} tokens into ${cut} and ${rest}, ` +
      `and each part needs at least length + 1 = ${length + 1}.`,
  );
  return {train: all.slice(0, cut), validation: all.slice(cut)};
}

/** Inputs and the tokens that follow them, both [B,T], row-major. */
export interface TokenBatch {
  inputs: Int32Array;
  targets: Int32Array;
  batchSize: number;
  length: number;
}

/** Copies the windows that start at `starts`. */
export function batchAt(tokens: Int32Array, starts: readonly number[], length: number): TokenBatch {
  const inputs = new Int32Array(starts.length * length);
  const targets = new Int32Array(starts.length * length);
  starts.forEach((start, row) => {
    inputs.set(tokens.subarray(start, start + length), row * length);
    targets.set(tokens.subarray(start + 1, start + length + 1), row * length);
  });
  return {inputs, targets, batchSize: starts.length, length};
}

/**
 * Windows of a token stream in a seeded random order. One epoch takes windows side by side, in an order and from a first
 * offset of its own. Window number n is a function of the seed and n alone: nothing has to be saved to continue.
 */
export class Windows {
  /** Windows in one epoch. */
  readonly perEpoch: number;
  private readonly slack: number;
  private epoch = -1;
  private offset = 0;
  private order: Uint32Array = new Uint32Array(0);

  constructor(
    private readonly tokens: Int32Array,
    readonly length: number,
    private readonly seed: number,
  ) {
    this.perEpoch = Math.max(1, Math.floor((tokens.length - length) / length));
    this.slack = tokens.length - 1 - this.perEpoch * length;
  }

  /** Windows number `first` .. `first + batchSize - 1`, counted from the start of training. */
  batch(first: number, batchSize: number): TokenBatch {
    const starts = Array.from({length: batchSize}, (_, row) => this.start(first + row));
    return batchAt(this.tokens, starts, this.length);
  }

  private start(index: number): number {
    const epoch = Math.floor(index / this.perEpoch);
    if (epoch !== this.epoch) {
      this.epoch = epoch;
      this.offset = random(mixSeed(this.seed, epoch, 1)).below(this.slack + 1);
      this.order = permutation(this.perEpoch, mixSeed(this.seed, epoch, 2));
    }
    return this.offset + this.order[index % this.perEpoch] * this.length;
  }
}
