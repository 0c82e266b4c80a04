import {check, checkInteger, checkOptions, show} from '../src/errors';
import {random} from '../src/random';
import {checkSampling, type SamplingOptions, sampleToken} from './sampling';

/** Options of `sampler`. */
export interface SamplerOptions extends SamplingOptions {
  /** The same seed gives the same tokens. Default 0. */
  seed?: number;
}

/**
 * A function that chooses the next token from logits, for loops of one's own over `stream`. With the same options and
 * seed it chooses what `generate` does.
 *
 * ```js
 * const pick = generation.sampler({temperature: 0.8, topK: 20, seed: 1});
 * const logits = stream.prefill(ids);
 * const id = pick(await logits.data());
 * logits.dispose();
 * ```
 *
 * @returns from logits [V], as numbers, to an id. It throws on NaN, on +Infinity, when every token is forbidden
 *   (-Infinity), and on what is no array of numbers, such as a tensor.
 * @throws on unknown options and on values out of range.
 */
export function sampler(options: SamplerOptions = {}): (logits: ArrayLike<number>) => number {
  const fn = 'generation.sampler';
  checkOptions(fn, options, ['temperature', 'topK', 'topP', 'seed']);
  const {seed = 0} = options;
  checkInteger(fn, 'seed', seed, Number.MIN_SAFE_INTEGER);
  checkSampling(fn, options);
  const rng = random(seed);
  return (logits) => {
    check(
      ArrayBuffer.isView(logits) || (Array.isArray(logits) && logits.every((x) => typeof x === 'number')),
      fn,
      () => `expected logits to be numbers, as \`await logits.data()\` gives; got ${show(logits)}.`,
    );
    return sampleToken(fn, logits, options, rng);
  };
}
