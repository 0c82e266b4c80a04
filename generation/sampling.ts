/** Choosing the next token from its logits, in plain JavaScript. */
import {check, checkInteger, checkNumber, fail, show} from '../src/errors';
import type {Random} from '../src/random';

/** How the next token is chosen from its logits. */
export interface SamplingOptions {
  /** Logits are divided by it. 0 takes the likeliest token always. Default 1. */
  temperature?: number;
  /** Only the k likeliest tokens. Default: all. */
  topK?: number;
  /** Then only the fewest likeliest tokens whose probabilities reach this sum, in (0, 1]. Default 1. */
  topP?: number;
}

/** Throws on what `sampleToken` cannot use. */
export function checkSampling(fn: string, {temperature = 1, topK, topP = 1}: SamplingOptions): void {
  checkNumber(fn, 'temperature', temperature, {min: 0});
  if (topK !== undefined) {
    checkInteger(fn, 'topK', topK);
  }
  check(
    typeof topP === 'number' && topP > 0 && topP <= 1,
    fn,
    () => `expected topP to be a number above 0, at most 1; got ${show(topP)}.`,
  );
}

/**
 * The id of the next token. Ties go to the lowest id. The options must have passed `checkSampling`.
 *
 * topK and topP work on the distribution after the temperature, topK first (top-p, or nucleus, sampling: Holtzman et
 * al. 2020, https://arxiv.org/abs/1904.09751, section 3.1).
 *
 * @param logits [V]; -Infinity forbids a token. @throws on NaN, on +Infinity, and when every token is forbidden.
 */
export function sampleToken(
  fn: string,
  logits: ArrayLike<number>,
  {temperature = 1, topK, topP = 1}: SamplingOptions,
  random: Random,
): number {
  const best = likeliest(fn, logits);
  if (temperature === 0 || topK === 1) {
    return best;
  }
  const largest = logits[best];
  let ids = Array.from({length: logits.length}, (_, id) => id);
  // Relative to the largest, so nothing overflows and the likeliest has weight 1.
  const weights = Float64Array.from(logits as ArrayLike<number>, (x) =>
    Math.exp((x - largest) / temperature),
  );
  if (topK !== undefined || topP < 1) {
    ids.sort((a, b) => logits[b] - logits[a] || a - b);
    ids = ids.slice(0, topK);
  }
  if (topP < 1) {
    ids = nucleus(ids, weights, topP);
  }
  let left = random.uniform() * sum(ids, weights);
  for (const id of ids) {
    left -= weights[id];
    if (left < 0) {
      return id;
    }
  }
  // Rounding may leave a trace above 0 after the last token: the last one that can be drawn.
  return ids.filter((id) => weights[id] > 0).pop() ?? best;
}

/** The fewest of the ids, which come likeliest first, whose share of the weight reaches topP. */
function nucleus(ids: number[], weights: Float64Array, topP: number): number[] {
  const enough = topP * sum(ids, weights);
  let reached = 0;
  let count = 0;
  while (count < ids.length && reached < enough) {
    reached += weights[ids[count++]];
  }
  return ids.slice(0, count);
}

function sum(ids: readonly number[], weights: Float64Array): number {
  return ids.reduce((total, id) => total + weights[id], 0);
}

function likeliest(fn: string, logits: ArrayLike<number>): number {
  let best = -1;
  for (let id = 0; id < logits.length; id++) {
    const x = logits[id];
    if (Number.isNaN(x) || x === Number.POSITIVE_INFINITY) {
      fail(fn, `expected finite logits; logit ${id} is ${x}.`);
    }
    if (x > Number.NEGATIVE_INFINITY && (best < 0 || x > logits[best])) {
      best = id;
    }
  }
  check(best >= 0, fn, () => `expected at least one logit above -Infinity among ${logits.length}.`);
  return best;
}
