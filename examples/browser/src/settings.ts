/**
 * The settings of the form, and their place in the address: `?prompt=Call+me&temperature=0.5` opens the page with them, so
 * that a link leads to the same text.
 */
import {input, numberIn} from './dom';
import type {WriteOptions} from './worker/protocol';

/** Name in the address: id of the field. */
const FIELDS = {
  prompt: 'prompt',
  temperature: 'temperature',
  topk: 'top-k',
  seed: 'seed',
  characters: 'characters',
  cache: 'cache',
} as const;

/** Takes the address's settings into the form. Returns a sentence for each that a field does not take as it is. */
export function readAddress(): string[] {
  const given = new URLSearchParams(location.search);
  const notes: string[] = [];
  for (const [name, id] of Object.entries(FIELDS)) {
    const value = given.get(name);
    if (value === null) continue;
    const field = input(id);
    const isText = field.type !== 'number';
    // The browser warns of what is no number.
    field.value = isText || Number.isFinite(Number(value)) ? value : '';
    if (isText) continue;
    const taken = numberIn(id);
    if (value.trim() === '' || Number(value) !== taken) {
      notes.push(`${name}=${value} in the address is not a possible value; ${taken} is used.`);
    }
  }
  if (given.get('beside') === 'no') input('beside').checked = false;
  return notes;
}

/** The backend that the address asks for, in any case. */
export const backendInAddress = (): string | null =>
  new URLSearchParams(location.search).get('backend')?.toLowerCase() ?? null;

export function settings(): WriteOptions {
  return {
    sides: input('beside').checked ? ['linear', 'softmax'] : ['linear'],
    prompt: input('prompt').value,
    temperature: numberIn('temperature'),
    topK: numberIn('top-k'),
    seed: numberIn('seed'),
    characters: numberIn('characters'),
    cacheBytes: numberIn('cache') * 1024 * 1024,
  };
}

/** Puts the settings into the address, without a new entry in the history. */
export function writeAddress(backend: string): void {
  const address = new URLSearchParams({backend});
  for (const [name, id] of Object.entries(FIELDS)) address.set(name, input(id).value);
  if (!input('beside').checked) address.set('beside', 'no');
  history.replaceState(null, '', `?${address}`);
}
