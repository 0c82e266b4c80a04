import {sampleToken} from '../../generation/sampling';
import {random} from '../../src/random';
import {messageOf} from '../helpers/numbers';

type Options = Parameters<typeof sampleToken>[2];
const LOGITS = Float32Array.of(1, 3, 2, 3, -1);

const draw = (options: Options, count = 4000, logits: ArrayLike<number> = LOGITS) => {
  const rng = random(1);
  const counts = new Array(logits.length).fill(0);
  for (let i = 0; i < count; i++) {
    counts[sampleToken('test', logits, options, rng)]++;
  }
  return counts.map((n) => n / count);
};
const softmax = (logits: number[], temperature = 1) => {
  const weights = logits.map((x) => Math.exp(x / temperature));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((w) => w / sum);
};
/** Within four standard errors. */
const expectShares = (got: number[], want: number[], count = 4000) =>
  got.forEach((share, id) => {
    const error = Math.abs(share - want[id]);
    expect([id, error <= 4 * Math.sqrt((want[id] * (1 - want[id])) / count)]).toEqual([id, true]);
  });

describe('sampling', () => {
  test('temperature 0 takes the likeliest, the first of equals', () => {
    expect(draw({temperature: 0}, 5)).toEqual([0, 1, 0, 0, 0]);
  });

  test('draws with the probabilities of the softmax', () => {
    expectShares(draw({}), softmax([...LOGITS]));
  });

  test('temperature flattens and sharpens', () => {
    expectShares(draw({temperature: 2}), softmax([...LOGITS], 2));
    expectShares(draw({temperature: 0.5}), softmax([...LOGITS], 0.5));
    expect(draw({temperature: 1e-300}, 100).filter((share) => share > 0)).toHaveLength(2);
  });

  test('topK keeps the k likeliest, lower ids first among equals', () => {
    expect(draw({topK: 1}, 20)).toEqual([0, 1, 0, 0, 0]);
    const [a, b] = softmax([3, 2]);
    expectShares(draw({topK: 3}), [0, a / (2 * a + b), b / (2 * a + b), a / (2 * a + b), 0]);
    expectShares(draw({topK: 99}), softmax([...LOGITS]));
  });

  test('topP keeps the fewest that reach it, counted after topK', () => {
    expectShares(draw({topP: 0.5}), [0, 0.5, 0, 0.5, 0]);
    expect(draw({topP: 1e-9}, 20)).toEqual([0, 1, 0, 0, 0]);
    expectShares(draw({topP: 1}), softmax([...LOGITS]));
    // Of all five, the first two make 0.78; of the first three, 0.84.
    expect(draw({topP: 0.8}, 2000)[2]).toBeGreaterThan(0);
    expect(draw({topK: 3, topP: 0.8}, 2000)[2]).toBe(0);
  });

  test('-Infinity forbids a token', () => {
    expect(draw({}, 50, [Number.NEGATIVE_INFINITY, 0])).toEqual([0, 1]);
    expect(draw({topK: 5}, 50, [Number.NEGATIVE_INFINITY, 0])).toEqual([0, 1]);
  });

  test('huge logits overflow nothing', () => {
    expectShares(draw({}, 4000, [3e38, 3e38, -3e38]), [0.5, 0.5, 0]);
  });

  test.each([
    ['NaN', [0, Number.NaN], 'test: expected finite logits; logit 1 is NaN.'],
    ['Infinity', [Number.POSITIVE_INFINITY], 'test: expected finite logits; logit 0 is Infinity.'],
    [
      'nothing allowed',
      [Number.NEGATIVE_INFINITY],
      'test: expected at least one logit above -Infinity among 1.',
    ],
  ])('refuses %s', (_, logits, message) => {
    expect(messageOf(() => sampleToken('test', logits, {}, random(1)))).toBe(message);
  });
});
