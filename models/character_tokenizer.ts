/** A tokenizer with one id per character (Unicode code point). */
import {check, checkOneOf, checkOptions, fail, show} from '../src/errors';

/** Options of `characterTokenizer`. */
export interface CharacterTokenizerOptions {
  /** What `encode` does with a character that has no id: an error that names it (default), or skip it. */
  unknown?: 'error' | 'skip';
}

/** What `toJSON` gives and `characterTokenizerFromJSON` takes. */
export interface CharacterTokenizerJSON {
  type: 'character';
  /** Each one code point, in increasing order; the index is the id. */
  characters: string[];
  unknown: 'error' | 'skip';
}

/**
 * Ids for characters: 0, 1, .. in the order of the code points. Made by `characterTokenizer`.
 *
 * ```js
 * const tokenizer = models.characterTokenizer('hello world');
 * tokenizer.vocabSize;                    // 8
 * tokenizer.decode(tokenizer.encode('hold'));  // 'hold'
 * ```
 */
export class CharacterTokenizer {
  readonly vocabSize: number;
  private readonly idOf: Map<string, number>;

  constructor(
    private readonly characters: readonly string[],
    private readonly unknown: 'error' | 'skip',
  ) {
    this.vocabSize = characters.length;
    this.idOf = new Map(characters.map((character, id) => [character, id]));
  }

  /** One id per character of `text`. Throws on a character without an id, unless made with `unknown: 'skip'`. */
  encode(text: string): Int32Array {
    const fn = 'characterTokenizer.encode';
    check(typeof text === 'string', fn, () => `expected text to be a string; got ${show(text)}.`);
    const ids = new Int32Array(text.length);
    let count = 0;
    for (const character of text) {
      const id = this.idOf.get(character);
      if (id !== undefined) {
        ids[count++] = id;
      } else if (this.unknown === 'error') {
        fail(
          fn,
          `the character ${describe(character)} is not among the ${this.vocabSize} of the vocabulary; make the tokenizer with {unknown: 'skip'} to leave such characters out.`,
        );
      }
    }
    return ids.slice(0, count);
  }

  /** The text of `ids`. Throws on what is not an id. */
  decode(ids: ArrayLike<number>): string {
    const fn = 'characterTokenizer.decode';
    check(
      Array.isArray(ids) || ArrayBuffer.isView(ids),
      fn,
      () => `expected ids to be an array of numbers; got ${show(ids)}.`,
    );
    return Array.from(ids, (id) => {
      check(
        Number.isInteger(id) && id >= 0 && id < this.vocabSize,
        fn,
        () => `expected ids from 0 to ${this.vocabSize - 1}; got ${show(id)}.`,
      );
      return this.characters[id];
    }).join('');
  }

  toJSON(): CharacterTokenizerJSON {
    return {type: 'character', characters: [...this.characters], unknown: this.unknown};
  }
}

/**
 * A tokenizer for the characters that occur in `text`.
 *
 * ```js
 * const tokenizer = tfla.models.characterTokenizer('to be or not');
 * console.log(tokenizer.vocabSize, tokenizer.encode('tot')); // 8, Int32Array [7, 5, 7]
 * ```
 *
 * @param text any non-empty string, usually the text to train on.
 * @throws Error for an empty text, what is no text, and unknown options.
 */
export function characterTokenizer(
  text: string,
  options: CharacterTokenizerOptions = {},
): CharacterTokenizer {
  const fn = 'characterTokenizer';
  check(typeof text === 'string', fn, () => `expected text to be a string; got ${show(text)}.`);
  check(text.length > 0, fn, () => 'expected text to have at least one character; got an empty string.');
  checkOptions(fn, options, ['unknown']);
  const {unknown = 'error'} = options;
  checkOneOf(fn, 'unknown', unknown, ['error', 'skip']);
  const characters = [...new Set(text)].sort((a, b) => a.codePointAt(0)! - b.codePointAt(0)!);
  return new CharacterTokenizer(characters, unknown);
}

/**
 * The tokenizer that `toJSON` described. The argument is taken from a file, so nothing about it is trusted.
 *
 * ```js
 * const saved = JSON.stringify(tfla.models.characterTokenizer('abc'));
 * const tokenizer = tfla.models.characterTokenizerFromJSON(JSON.parse(saved));
 * ```
 *
 * @throws Error that names what is wrong with it.
 */
export function characterTokenizerFromJSON(json: unknown): CharacterTokenizer {
  const fn = 'characterTokenizerFromJSON';
  checkOptions(fn, json ?? null, ['type', 'characters', 'unknown'], 'json');
  const {type, characters, unknown = 'error'} = json as Partial<CharacterTokenizerJSON>;
  check(type === 'character', fn, () => `expected type to be 'character'; got ${show(type)}.`);
  checkOneOf(fn, 'unknown', unknown, ['error', 'skip']);
  check(
    Array.isArray(characters) && characters.length > 0 && characters.length <= 0x110000,
    fn,
    () => `expected characters to be a non-empty array; got ${show(characters)}.`,
  );
  let previous = -1;
  for (let id = 0; id < characters.length; id++) {
    const character: unknown = characters[id];
    check(
      typeof character === 'string' && character.length <= 2 && [...character].length === 1,
      fn,
      () => `expected characters[${id}] to be one character; got ${show(character)}.`,
    );
    const point = character.codePointAt(0)!;
    check(
      point > previous,
      fn,
      () =>
        `expected characters in increasing order, each once; characters[${id}] is ${describe(character)}.`,
    );
    previous = point;
  }
  return new CharacterTokenizer([...characters], unknown);
}

/** `'é' (U+00E9)` */
function describe(character: string): string {
  return `'${character}' (U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')})`;
}
