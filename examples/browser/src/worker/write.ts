/**
 * Writing on one side or on both. Both get the same time, not the same number of tokens: the one that has used less goes
 * next, so that a side whose tokens take longer falls behind, as it would on its own.
 */
import {loadedOn} from './loaded_models';
import {Looker} from './looking';
import {pause} from './pause';
import type {Ended, EventOf, Look, WriteOptions, Written} from './protocol';
import {freshSignal} from './stop_signal';
import {Writer} from './writer';

/** Milliseconds between two batches of news for the page; each is one repaint. */
const NEWS_EVERY = 33;
const LOOK_EVERY = 250;

export async function write(
  options: WriteOptions,
  emit: (event: EventOf<'write'>) => void,
): Promise<{leftOut: string}> {
  const signal = freshSignal();
  const writers: Writer[] = [];
  const looker = options.sides.includes('linear') ? new Looker(loadedOn('linear').model) : null;
  try {
    for (const side of options.sides) writers.push(new Writer(side, loadedOn(side), options));
    await race(writers, looker, options, signal, emit);
  } finally {
    looker?.dispose();
    for (const writer of writers) writer.dispose();
  }
  return {leftOut: leftOut(options)};
}

async function race(
  writers: Writer[],
  looker: Looker | null,
  {prompt, sides}: WriteOptions,
  signal: AbortSignal,
  emit: (event: Written | Ended | Look) => void,
): Promise<void> {
  const news = new Map(sides.map((side) => [side, emptyNews(side)]));
  let told = performance.now();
  let looked = 0;
  looker?.read(known(prompt));
  while (writers.some(({end}) => end === null)) {
    const writer = writers
      .filter(({end}) => end === null)
      .reduce((least, other) => (other.spent < least.spent ? other : least));
    const token = await writer.next();
    if (token === null) continue;
    const {character, position, milliseconds, bytes} = token;
    const item = news.get(writer.side)!;
    item.text += character;
    item.positions.push(position);
    item.milliseconds.push(milliseconds);
    item.bytes.push(bytes);
    const now = performance.now();
    if (writer.side === 'linear' && looker !== null) {
      if (now - looked >= LOOK_EVERY || writer.end !== null) {
        const look = await looker.look(position);
        if (look !== null) emit(look);
        looked = performance.now();
      }
      looker.read(character);
    }
    if (now - told >= NEWS_EVERY || writer.end !== null) {
      for (const side of sides) tell(side);
      await pause();
      told = performance.now();
      if (signal.aborted) {
        for (const other of writers) other.end ??= 'stopped';
      }
    }
  }
  for (const side of sides) tell(side);
  for (const {side, end, position, reason} of writers) {
    emit({event: 'ended', side, end: end!, position, reason});
  }

  function tell(side: Written['side']): void {
    const item = news.get(side)!;
    if (item.positions.length > 0) {
      emit(item);
      news.set(side, emptyNews(side));
    }
  }
}

const emptyNews = (side: Written['side']): Written => ({
  event: 'written',
  side,
  text: '',
  positions: [],
  milliseconds: [],
  bytes: [],
});

/** The prompt as the linear model reads it. */
function known(prompt: string): string {
  const {tokenizer} = loadedOn('linear');
  return tokenizer.decode(tokenizer.encode(prompt));
}

/** The prompt's characters that some model does not know, each once. */
function leftOut({prompt, sides}: WriteOptions): string {
  const unknown = (character: string) =>
    sides.some((side) => loadedOn(side).tokenizer.encode(character).length === 0);
  return [...new Set(prompt)].filter(unknown).join('');
}
