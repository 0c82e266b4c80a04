/** Linear attention beside softmax attention with a key-value cache: tokens per second and bytes carried, as positions grow. */
import {generation} from 'tfjs-linear-attention';

/** Tokens that are handed to a stream at once on the way to a position. */
const CHUNK = 256;
const WARM_UP = 4;

const now = () => performance.now() / 1000;

/** Advances the stream to a position. */
function advance(stream, ids, position) {
  while (stream.position < position) {
    const start = stream.position;
    const part = Array.from(
      {length: Math.min(CHUNK, position - start)},
      (_, i) => ids[(start + i) % ids.length],
    );
    stream.prefill(part).dispose();
  }
}

/** Median seconds of a step, reading the logits included. */
function secondsPerToken(stream, ids, tokens) {
  const times = [];
  for (let i = 0; i < WARM_UP + tokens; i++) {
    const started = now();
    const logits = stream.step(ids[i % ids.length]);
    logits.dataSync();
    if (i >= WARM_UP) times.push(now() - started);
    logits.dispose();
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}

/**
 * Measures both models at each position. The weights don't matter for the time, so the softmax model is an untrained one of the
 * same size.
 */
export function measureDecoding({linear, softmax, ids, positions, tokens = 24}) {
  const streams = {linear: generation.stream(linear), softmax: generation.stream(softmax)};
  const rows = positions.map((position) => {
    const row = {position};
    for (const [kind, stream] of Object.entries(streams)) {
      advance(stream, ids, position);
      // A fork, so that every position is measured from exactly there.
      const fork = stream.fork();
      row[kind] = {tokensPerSecond: 1 / secondsPerToken(fork, ids, tokens), bytes: stream.stateBytes};
      fork.dispose();
    }
    return row;
  });
  for (const stream of Object.values(streams)) stream.dispose();
  return rows;
}

const number = (value) => Math.round(value).toLocaleString('en');

/** The rows as a table of fixed width, each saying who is faster and who carries less. */
export function printTable(rows, print = console.log) {
  print('               linear attention           softmax with a cache');
  print('position    tokens/s   state bytes     tokens/s   cache bytes    faster              smaller');
  for (const {position, linear, softmax} of rows) {
    const speed = linear.tokensPerSecond / softmax.tokensPerSecond;
    const faster = speed >= 1 ? `linear ${speed.toFixed(1)}x` : `softmax ${(1 / speed).toFixed(1)}x`;
    const size = softmax.bytes / linear.bytes;
    const smaller = size >= 1 ? `linear ${size.toFixed(1)}x` : `softmax ${(1 / size).toFixed(1)}x`;
    print(
      number(position).padStart(8) +
        number(linear.tokensPerSecond).padStart(12) +
        number(linear.bytes).padStart(14) +
        number(softmax.tokensPerSecond).padStart(13) +
        number(softmax.bytes).padStart(14) +
        `    ${faster.padEnd(20)}${smaller}`,
    );
  }
}
