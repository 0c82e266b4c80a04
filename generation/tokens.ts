/** What callers give a stream: tokens and masks, checked and read into plain arrays. */
import * as tf from '@tensorflow/tfjs-core';
import {shapeOf} from '../src/convert';
import {check, fail, showShape} from '../src/errors';
import type {Plan} from './plan';

/** ids, or, for a model of vectors, vectors. */
export type TokenInput = tf.Tensor | tf.TensorLike;

export interface Tokens {
  /** ids [B,T] or vectors [B,T,D], row by row. */
  values: Int32Array | Float32Array;
  length: number;
  /** Per row, how many of its tokens are there; padding fills the rest. */
  counts: Int32Array;
}

/** Reads what `step` is given: one token per row. */
export function readStep(fn: string, given: TokenInput, batchSize: number, plan: Plan): Tokens {
  const shape = shapeOf(fn, 'ids', given);
  const one = [...(plan.inputDim === null ? [] : [plan.inputDim])];
  const accepted = [[batchSize, ...one], [batchSize, 1, ...one], ...(batchSize === 1 ? [one] : [])];
  check(
    accepted.some((s) => tf.util.arraysEqual(s, shape)),
    fn,
    () =>
      `expected ${batchSize === 1 && plan.inputDim === null ? 'one id' : `one token per row, ${showShape(accepted[0])}`}; got shape ${showShape(shape)}.`,
  );
  return finish(fn, given, 1, null, batchSize, plan);
}

/** Reads what `prefill` is given: T >= 1 tokens per row, and which of them are not padding. */
export function readPrefill(
  fn: string,
  given: TokenInput,
  mask: TokenInput | undefined,
  batchSize: number,
  plan: Plan,
): Tokens {
  const shape = shapeOf(fn, 'ids', given);
  const one = plan.inputDim === null ? 0 : 1; // axes of one token
  const rowOnly = shape.length === 1 + one && batchSize === 1;
  const single = shape.length === one && batchSize === 1;
  const full = shape.length === 2 + one && shape[0] === batchSize;
  check((rowOnly || single || full) && (one === 0 || shape[shape.length - 1] === plan.inputDim), fn, () => {
    const d = one === 0 ? '' : `,${plan.inputDim}`;
    return `expected ids of shape [${batchSize},T${d}]${batchSize === 1 ? ` or [T${d}]` : ''}; got ${showShape(shape)}.`;
  });
  const length = single ? 1 : shape[shape.length - 1 - one];
  check(length > 0, fn, () => 'expected at least one token; got none.');
  return finish(fn, given, length, mask, batchSize, plan);
}

function finish(
  fn: string,
  given: TokenInput,
  length: number,
  maskGiven: TokenInput | undefined | null,
  batchSize: number,
  plan: Plan,
): Tokens {
  const mask = maskGiven == null ? null : readMask(fn, maskGiven, batchSize, length);
  const numbers = read(given);
  if (plan.inputDim !== null) {
    return compact(Float32Array.from(numbers), plan.inputDim, batchSize, length, mask);
  }
  check(
    !(given instanceof tf.Tensor) || given.dtype === 'int32',
    fn,
    () => `expected ids to be int32; got a tensor of dtype ${(given as tf.Tensor).dtype}.`,
  );
  const values = new Int32Array(numbers.length);
  for (let i = 0; i < values.length; i++) {
    values[i] = numbers[i];
    if (values[i] !== numbers[i] || values[i] < 0 || values[i] >= (plan.vocabSize ?? 2 ** 31)) {
      const range = plan.vocabSize === null ? 'of at least 0' : `from 0 to ${plan.vocabSize - 1}`;
      // What stands under a mask is never looked at.
      if (mask?.[i] !== 0) fail(fn, `expected ids to be whole numbers ${range}; got ${numbers[i]}.`);
      values[i] = 0;
    }
  }
  return compact(values, 1, batchSize, length, plan.maskZero ? withoutZeros(values, mask) : mask);
}

/**
 * Moves each row's tokens to its front, and padding behind them. A token's place beside padding means nothing (its
 * position is the number of tokens before it), and this way padding costs the least.
 */
function compact<T extends Int32Array | Float32Array>(
  values: T,
  size: number,
  batchSize: number,
  length: number,
  mask: Uint8Array | null,
): Tokens {
  const counts = new Int32Array(batchSize).fill(length);
  if (mask === null) {
    return {values, length, counts};
  }
  for (let row = 0; row < batchSize; row++) {
    counts[row] = mask.subarray(row * length, (row + 1) * length).reduce((a, b) => a + b, 0);
  }
  const longest = counts.reduce((a, b) => Math.max(a, b), 0);
  const moved = values.slice(0, batchSize * longest * size).fill(0);
  for (let row = 0; row < batchSize; row++) {
    let to = row * longest;
    for (let from = row * length; from < (row + 1) * length; from++) {
      if (mask[from] !== 0) {
        moved.set(values.subarray(from * size, (from + 1) * size), to++ * size);
      }
    }
  }
  return {values: moved, length: longest, counts};
}

function readMask(fn: string, given: TokenInput, batchSize: number, length: number): Uint8Array | null {
  const shape = shapeOf(fn, 'mask', given);
  check(
    tf.util.arraysEqual(shape, [batchSize, length]) ||
      (batchSize === 1 && tf.util.arraysEqual(shape, [length])),
    fn,
    () => `expected mask to have the ids' shape [${batchSize},${length}]; got ${showShape(shape)}.`,
  );
  const mask = Uint8Array.from(read(given), (keep) => (keep === 0 ? 0 : 1));
  return mask.includes(0) ? mask : null;
}

function withoutZeros(ids: Int32Array, mask: Uint8Array | null): Uint8Array | null {
  return ids.includes(0) ? Uint8Array.from(ids, (id, i) => (id !== 0 && mask?.[i] !== 0 ? 1 : 0)) : mask;
}

/** All numbers of a tensor or nested arrays, row by row. */
function read(given: TokenInput): ArrayLike<number> {
  if (given instanceof tf.Tensor) {
    return given.dataSync();
  }
  const list: unknown[] = [given].flat(Number.POSITIVE_INFINITY);
  return list.flatMap((x) => (ArrayBuffer.isView(x) ? Array.from(x as Float32Array) : [Number(x)]));
}
