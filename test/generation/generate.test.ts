import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {generation, models} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {messageOf, valuesOf} from '../helpers/numbers';

const V = 12;

async function all<T>(tokens: AsyncIterable<T>): Promise<T[]> {
  const made: T[] = [];
  for await (const token of tokens) {
    made.push(token);
  }
  return made;
}

describeOnBackends('generate', () => {
  let model: LayersModel;
  beforeAll(() => {
    model = models.transformer({
      vocabSize: V,
      dModel: 8,
      numLayers: 1,
      numHeads: 2,
      tieEmbeddings: false,
      seed: 1,
    });
  });
  afterAll(() => {
    model.dispose();
  });

  test('temperature 0: each token is the likeliest after those before, by predict', async () => {
    await expectNoLeak(async () => {
      const prompt = [3, 1];
      const got = await all(generation.generate(model, prompt, {maxNewTokens: 6, temperature: 0}));
      const ids = [...prompt];
      for (let i = 0; i < 6; i++) {
        const logits = valuesOf(
          () => model.predict(tf.tensor2d([ids], undefined, 'int32')) as tf.Tensor,
        ).slice(-V);
        ids.push(logits.indexOf(Math.max(...logits)));
      }
      expect(got).toEqual(ids.slice(2));
    });
  });

  test('the same seed gives the same tokens, another seed others', async () => {
    const run = (seed: number) => all(generation.generate(model, [1], {maxNewTokens: 30, seed}));
    const first = await run(7);
    expect(first).toHaveLength(30);
    expect(new Set(first).size).toBeGreaterThan(3);
    expect(await run(7)).toEqual(first);
    expect(await run(8)).not.toEqual(first);
  });

  test('two at once do not disturb each other', async () => {
    const run = (seed: number) => all(generation.generate(model, [seed], {maxNewTokens: 10, seed}));
    const [a, b] = await Promise.all([run(1), run(2)]);
    expect([a, b]).toEqual([await run(1), await run(2)]);
  });

  test('topK 1 and a tiny topP are greedy', async () => {
    const run = (options: object) =>
      all(generation.generate(model, [5], {maxNewTokens: 8, seed: 3, ...options}));
    const greedy = await run({temperature: 0});
    expect(await run({topK: 1})).toEqual(greedy);
    expect(await run({topP: 1e-6})).toEqual(greedy);
  });

  test('stops at a stop token, which it does not yield', async () => {
    await expectNoLeak(async () => {
      const tokens = await all(generation.generate(model, [1], {maxNewTokens: 30, seed: 7}));
      const stop = tokens[5];
      const got = await all(
        generation.generate(model, [1], {maxNewTokens: 30, seed: 7, stopTokens: [99, stop]}),
      );
      expect(got).toEqual(tokens.slice(0, tokens.indexOf(stop)));
    });
  });

  test('text in, text out', async () => {
    const tokenizer = models.characterTokenizer('abcdefghij😀é');
    const pieces = await all(generation.generate(model, 'bé', {maxNewTokens: 20, seed: 7, tokenizer}));
    const ids = await all(generation.generate(model, tokenizer.encode('bé'), {maxNewTokens: 20, seed: 7}));
    expect(pieces).toEqual(ids.map((id) => tokenizer.decode([id])));
  });

  test('a character of several tokens comes when it is complete, what is left over at the end', async () => {
    // Two tokens make one character; one alone decodes to the replacement character.
    const tokenizer = {
      encode: (text: string) => [...text].map(() => 1),
      decode: (ids: number[]) =>
        'x'.repeat(Math.floor(ids.length / 2)) + (ids.length % 2 === 1 ? '\uFFFD' : ''),
    };
    const pieces = await all(generation.generate(model, 'a', {maxNewTokens: 5, tokenizer}));
    expect(pieces).toEqual(['x', 'x', '\uFFFD']);
  });

  test('breaking out early, return() and throw() free everything', async () => {
    await expectNoLeak(async () => {
      for await (const _ of generation.generate(model, [1], {maxNewTokens: 50})) {
        break;
      }
      const tokens = generation.generate(model, [1]);
      await tokens.next();
      await tokens.return();
      expect(await tokens.next()).toEqual({done: true, value: undefined});
      const thrown = generation.generate(model, [1]);
      await thrown.next();
      await expect(thrown.throw(new Error('mine'))).rejects.toThrow('mine');
      generation.generate(model, [1]); // never iterated
      const tokenizer = models.characterTokenizer('abcdefghij😀é');
      for await (const _ of generation.generate(model, 'a', {tokenizer})) {
        break;
      }
    });
  });

  test('a signal ends it between two tokens, without an error', async () => {
    await expectNoLeak(async () => {
      const controller = new AbortController();
      const got: number[] = [];
      for await (const id of generation.generate(model, [1], {
        maxNewTokens: 50,
        seed: 7,
        signal: controller.signal,
      })) {
        got.push(id);
        if (got.length === 3) {
          controller.abort();
        }
      }
      expect(got).toHaveLength(3);
      expect(await all(generation.generate(model, [1], {signal: controller.signal}))).toEqual([]);
    });
  });

  test('lets timers run, so that a stop button works', async () => {
    await expectNoLeak(async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 30);
      const got = await all(generation.generate(model, [1], {maxNewTokens: 1e6, signal: controller.signal}));
      expect(got.length).toBeLessThan(1e6);
    });
  });

  test('makes no token when none is asked for', async () => {
    expect(await all(generation.generate(model, [1], {maxNewTokens: 0}))).toEqual([]);
  });

  test('NaN logits are an error that frees everything', async () => {
    const broken = models.transformer({
      vocabSize: V,
      dModel: 8,
      numLayers: 1,
      numHeads: 2,
      tieEmbeddings: false,
    });
    const bias = broken.getLayer('head').weights[1].read() as tf.Variable;
    tf.tidy(() => bias.assign(tf.fill([V], Number.NaN)));
    await expectNoLeak(async () => {
      await expect(all(generation.generate(broken, [1]))).rejects.toThrow(
        'generation.generate: expected finite logits; logit 0 is NaN.',
      );
    });
    broken.dispose();
  });

  const tokenizer = models.characterTokenizer('ab');
  test.each<[string, unknown, object | undefined, string]>([
    ['no prompt', [], {}, 'expected at least one token; got none.'],
    ['an id past the vocabulary', [99], {}, 'expected ids to be whole numbers from 0 to 11; got 99.'],
    [
      'a text without a tokenizer',
      'ab',
      {},
      "expected ids to be a tensor or nested arrays of numbers; got 'ab'.",
    ],
    [
      'ids with a tokenizer',
      [1],
      {tokenizer},
      'expected prompt to be a text of at least one character, as a tokenizer is given; got [1].',
    ],
    [
      'an empty text',
      '',
      {tokenizer},
      "expected prompt to be a text of at least one character, as a tokenizer is given; got ''.",
    ],
    [
      'a tokenizer that is none',
      'ab',
      {tokenizer: {}},
      'expected tokenizer to have encode and decode; got an object with keys (none).',
    ],
    [
      'a typo',
      [1],
      {maxTokens: 3},
      "unknown option 'maxTokens'; expected 'maxNewTokens', 'temperature', 'topK', 'topP', 'seed', 'stopTokens', 'signal', 'tokenizer'.",
    ],
    [
      'a negative temperature',
      [1],
      {temperature: -1},
      'expected temperature to be a finite number of at least 0; got -1.',
    ],
    [
      'NaN as temperature',
      [1],
      {temperature: Number.NaN},
      'expected temperature to be a finite number of at least 0; got NaN.',
    ],
    ['topK 0', [1], {topK: 0}, 'expected topK to be a whole number of at least 1; got 0.'],
    ['topP 0', [1], {topP: 0}, 'expected topP to be a number above 0, at most 1; got 0.'],
    ['topP above 1', [1], {topP: 1.5}, 'expected topP to be a number above 0, at most 1; got 1.5.'],
    [
      'half a token',
      [1],
      {maxNewTokens: 0.5},
      'expected maxNewTokens to be a whole number of at least 0; got 0.5.',
    ],
    [
      'a seed that is no number',
      [1],
      {seed: 'x'},
      /^expected seed to be a whole number of at least -?\d+; got 'x'\.$/.source,
    ],
    [
      'stop tokens that are no ids',
      [1],
      {stopTokens: 'x'},
      "expected stopTokens to be an array of ids; got 'x'.",
    ],
    ['a signal that is none', [1], {signal: true}, 'expected signal to be an AbortSignal; got true.'],
  ])('refuses %s at the call', async (_, prompt, options, message) => {
    await expectNoLeak(() => {
      const text = messageOf(() => generation.generate(model, prompt as never, options as never));
      expect(text.slice(0, 21)).toBe('generation.generate: ');
      if (message.startsWith('^')) {
        expect(text.slice(21)).toMatch(new RegExp(message));
      } else {
        expect(text.slice(21)).toBe(message);
      }
    });
  });
});
