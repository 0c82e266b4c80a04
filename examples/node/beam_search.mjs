/**
 * Beam search: completes words by several texts side by side, each a stream of its own that forks where the paths part.
 *
 *     node examples/node/beam_search.mjs [--quick]
 *
 * Greedy decoding takes the likeliest character each time, cannot take it back, and gives one answer. A beam of K keeps the K likeliest
 * texts so far: it can end at a word that is likelier as a whole, and it has the next best ones too. Each path needs the model's
 * memory of its own text. With linear attention that is a state of fixed size, so a fork costs the same few kilobytes at every
 * length; with a key-value cache it would be all keys and values so far.
 */
import {parseArgs} from 'node:util';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-wasm';
import {generation, models, patches, training} from 'tfjs-linear-attention';
import {mobyDick} from './moby_dick.mjs';

const {quick} = parseArgs({options: {quick: {type: 'boolean', default: false}}}).values;
const WIDTH = 5;
const LONGEST = 12; // characters
const PROMPTS = ['he saw the wh', 'the old cap', 'he stood upon the s', 'in the b', 'and then he w'];

/** log p of every next character. Disposes the logits, which are the caller's. */
function logProbabilities(logits) {
  const values = tf.tidy(() => tf.logSoftmax(logits).dataSync());
  logits.dispose();
  return values;
}

/** The `count` ids of largest value. */
function best(values, count) {
  return Array.from(values.keys())
    .sort((a, b) => values[b] - values[a])
    .slice(0, count);
}

/** The `width` likeliest ways to end the prompt's last word, the likeliest first. A width of 1 is greedy decoding. */
function complete(model, prompt, {width, end}) {
  const stream = generation.stream(model);
  let beam = [{stream, ids: [], logP: 0, next: logProbabilities(stream.prefill(prompt))}];
  const isDone = ({ids}) => ids.at(-1) === end || ids.length === LONGEST;
  while (!beam.every(isDone)) {
    // What is done competes as it is; the others with their likeliest next characters.
    const candidates = beam.flatMap((path) =>
      isDone(path)
        ? [{path, logP: path.logP}]
        : best(path.next, width).map((id) => ({path, id, logP: path.logP + path.next[id]})),
    );
    const grown = candidates
      .sort((a, b) => b.logP - a.logP)
      .slice(0, width)
      .map(({path, id, logP}) => {
        // Several may go on from one path: each gets a fork. What is forked keeps its value.
        const fork = path.stream.fork();
        if (id === undefined) return {...path, stream: fork};
        return {stream: fork, ids: [...path.ids, id], logP, next: logProbabilities(fork.step(id))};
      });
    for (const path of beam) path.stream.dispose();
    beam = grown;
  }
  return beam.map((path) => {
    const bytes = path.stream.stateBytes;
    path.stream.dispose();
    return {ids: path.ids, logP: path.logP, bytes};
  });
}

/** The same log probability from one call of the model on the whole text, without any stream: the check. */
function score(model, prompt, ids) {
  return tf.tidy(() => {
    const all = [...prompt, ...ids];
    const logits = model.predict(tf.tensor2d([all.slice(0, -1)], [1, all.length - 1], 'int32'));
    const logP = tf.logSoftmax(logits).arraySync()[0];
    return ids.reduce((sum, id, i) => sum + logP[prompt.length - 1 + i][id], 0);
  });
}

tf.enableProdMode();
await tf.setBackend('wasm');
patches.wasmMatMul();
// Letters and spaces only: a small model learns to spell sooner.
const text = mobyDick()
  .slice(0, quick ? 60_000 : 600_000)
  .toLowerCase()
  .replaceAll(/[^a-z]+/g, ' ');
const tokenizer = models.characterTokenizer(text);
const [end] = tokenizer.encode(' ');
const model = models.transformer({
  vocabSize: tokenizer.vocabSize,
  dModel: quick ? 32 : 64,
  numLayers: 2,
  numHeads: 2,
  featureMap: 'exp',
  seed: 1,
});
await training.train(model, tokenizer.encode(text), {
  steps: quick ? 80 : 800,
  batchSize: 8,
  length: 64,
  learningRate: 1e-2,
  seed: 1,
  onProgress: ({step, loss}) =>
    step % (quick ? 20 : 200) === 0 && console.log(`step ${step}: loss ${loss.toFixed(3)}`),
});

const before = tf.memory().numTensors;
const percent = (logP) => `${(100 * Math.exp(logP)).toFixed(2)} %`;
let gained = 0;
let error = 0;
for (const words of PROMPTS) {
  const prompt = Array.from(tokenizer.encode(words));
  const lastWord = words.slice(words.lastIndexOf(' ') + 1);
  const [greedy, beam] = [1, WIDTH].map((width) => complete(model, prompt, {width, end}));
  const shown = ({ids, logP}) => `${lastWord}${tokenizer.decode(ids).trimEnd()} ${percent(logP)}`;
  console.log(`\n${words}...\n  greedy  ${shown(greedy[0])}\n  beam    ${beam.map(shown).join(', ')}`);
  gained += beam[0].logP - greedy[0].logP;
  for (const {ids, logP} of beam) error = Math.max(error, Math.abs(logP - score(model, prompt, ids)));
}
const {bytes} = complete(model, Array.from(tokenizer.encode(PROMPTS[0])), {width: 1, end})[0];
console.log(
  `\nOver ${PROMPTS.length} words the beam's first is e^${gained.toFixed(2)} times as likely as the greedy one. A path costs ${bytes} bytes. ` +
    `Log probabilities differ from those of one call on the whole text by at most ${error.toExponential(1)}; ` +
    `${tf.memory().numTensors - before} tensors left over.`,
);
model.dispose();
