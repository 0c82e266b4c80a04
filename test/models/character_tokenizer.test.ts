import {models} from '../../index';
import {messageOf} from '../helpers/numbers';

const {characterTokenizer, characterTokenizerFromJSON} = models;

describe('character tokenizer', () => {
  test('gives ids in the order of the code points, each character once', () => {
    const tokenizer = characterTokenizer('banana');
    expect(tokenizer.vocabSize).toBe(3);
    expect(tokenizer.encode('abn')).toEqual(Int32Array.of(0, 1, 2));
    expect(characterTokenizer('nab').toJSON()).toEqual(tokenizer.toJSON());
  });

  test('decodes what it encoded, also beyond the basic plane', () => {
    const text = 'é😀a\n\u{10FFFF}é😀';
    const tokenizer = characterTokenizer(text);
    expect(tokenizer.vocabSize).toBe(5);
    expect(tokenizer.encode(text)).toHaveLength(7);
    expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    expect(tokenizer.decode([...tokenizer.encode('😀')])).toBe('😀');
  });

  test('survives JSON, lone surrogates included', () => {
    const text = 'z\ud83d a\ude00 \u0000__proto__';
    const tokenizer = characterTokenizer(text);
    const copy = characterTokenizerFromJSON(JSON.parse(JSON.stringify(tokenizer)));
    expect(copy.encode(text)).toEqual(tokenizer.encode(text));
    expect(copy.decode(copy.encode(text))).toBe(text);
  });

  test('names a character that it does not know, or skips it when told to', () => {
    expect(messageOf(() => characterTokenizer('abc').encode('ab😀'))).toBe(
      "characterTokenizer.encode: the character '😀' (U+1F600) is not among the 3 of the vocabulary; make the tokenizer with {unknown: 'skip'} to leave such characters out.",
    );
    const skipping = characterTokenizer('abc', {unknown: 'skip'});
    expect(skipping.encode('xa😀c')).toEqual(Int32Array.of(0, 2));
    const copy = characterTokenizerFromJSON(JSON.parse(JSON.stringify(skipping)));
    expect(copy.encode('xa')).toEqual(Int32Array.of(0));
  });

  test.each<[string, () => unknown, string]>([
    [
      'no text',
      () => characterTokenizer(7 as never),
      'characterTokenizer: expected text to be a string; got 7.',
    ],
    [
      'an empty text',
      () => characterTokenizer(''),
      'characterTokenizer: expected text to have at least one character; got an empty string.',
    ],
    [
      'an unknown option',
      () => characterTokenizer('a', {skip: true} as never),
      "characterTokenizer: unknown option 'skip'; expected 'unknown'.",
    ],
    [
      'an id out of range',
      () => characterTokenizer('ab').decode([0, 2]),
      'characterTokenizer.decode: expected ids from 0 to 1; got 2.',
    ],
    [
      'an id that is no whole number',
      () => characterTokenizer('ab').decode([0.5]),
      'characterTokenizer.decode: expected ids from 0 to 1; got 0.5.',
    ],
    [
      'ids that are no array',
      () => characterTokenizer('ab').decode(1 as never),
      'characterTokenizer.decode: expected ids to be an array of numbers; got 1.',
    ],
    [
      'JSON that is null',
      () => characterTokenizerFromJSON(null),
      'characterTokenizerFromJSON: expected json to be an object; got null.',
    ],
    [
      'JSON of another type',
      () => characterTokenizerFromJSON({type: 'bytes', characters: ['a']}),
      "characterTokenizerFromJSON: expected type to be 'character'; got 'bytes'.",
    ],
    [
      'JSON with more in it',
      () => characterTokenizerFromJSON({type: 'character', characters: ['a'], size: 1}),
      "characterTokenizerFromJSON: unknown option 'size'; expected 'type', 'characters', 'unknown'.",
    ],
    [
      'JSON without characters',
      () => characterTokenizerFromJSON({type: 'character', characters: []}),
      'characterTokenizerFromJSON: expected characters to be a non-empty array; got [].',
    ],
    [
      'a character of two',
      () => characterTokenizerFromJSON({type: 'character', characters: ['a', 'bc']}),
      "characterTokenizerFromJSON: expected characters[1] to be one character; got 'bc'.",
    ],
    [
      'a character twice',
      () => characterTokenizerFromJSON({type: 'character', characters: ['a', 'a']}),
      "characterTokenizerFromJSON: expected characters in increasing order, each once; characters[1] is 'a' (U+0061).",
    ],
  ])('refuses %s', (_, f, message) => {
    expect(messageOf(f)).toBe(message);
  });
});
