/**
 * Time of one decoding step by position: `node benchmarks/decode.mjs [wasm|cpu]` after `npm run build`.
 *
 * Two streams of one model stand at positions 8 and 8192 and take 200 tokens each, in turns, so that whatever else the machine
 * does falls on both. A step's time includes reading the logits. Linear attention must be flat: the ratio of the medians is
 * at most 1.10, and the states have the same number of bytes. Exits with 1 when that is exceeded.
 */
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-wasm';
import * as tf from '@tensorflow/tfjs-core';
import {generation, models} from 'tfjs-linear-attention';

const backend = process.argv[2] ?? 'wasm';
const POSITIONS = [8, 8192];
const TOKENS = 200;
const WARM_UP = 20;
const MAX_RATIO = 1.1;
const CHUNK = 512;
const VOCAB = 64;

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const token = (t) => (t * 7919) % VOCAB;

function streamAt(model, position) {
  const stream = generation.stream(model);
  for (let t = 0; t < position; t += CHUNK) {
    const ids = Array.from({length: Math.min(CHUNK, position - t)}, (_, i) => token(t + i));
    stream.prefill(ids).dispose();
  }
  return stream;
}

function timedStep(stream) {
  const started = performance.now();
  const logits = stream.step(token(stream.position));
  logits.dataSync();
  const time = performance.now() - started;
  logits.dispose();
  return time;
}

await tf.setBackend(backend);
await tf.ready();
const model = models.transformer({
  vocabSize: VOCAB,
  dModel: 128,
  numLayers: 2,
  numHeads: 4,
  attention: 'linear',
  seed: 1,
});
const streams = POSITIONS.map((position) => streamAt(model, position));
for (let i = 0; i < WARM_UP; i++) for (const stream of streams) timedStep(stream);
const times = POSITIONS.map(() => []);
for (let i = 0; i < TOKENS; i++) {
  // Who goes first changes, so that going first costs neither more than the other.
  for (const j of i % 2 === 0 ? [0, 1] : [1, 0]) times[j].push(timedStep(streams[j]));
}

const medians = times.map(median);
console.log(
  `backend ${backend}, node ${process.version}; 2 layers, d = 128, 4 heads; ${TOKENS} tokens each, in turns`,
);
console.log('| position | median ms per token | state, bytes |\n|---|---|---|');
POSITIONS.forEach((position, j) => {
  console.log(`| ${position} | ${medians[j].toFixed(3)} | ${streams[j].stateBytes} |`);
});
const ratio = medians[1] / medians[0];
console.log(`\nratio ${ratio.toFixed(3)} (at most ${MAX_RATIO})`);
if (!(ratio <= MAX_RATIO && streams[0].stateBytes === streams[1].stateBytes)) process.exitCode = 1;
