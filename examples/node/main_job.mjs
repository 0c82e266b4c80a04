/**
 * The main job, `npm start`: trains a character-level transformer with linear attention on Moby-Dick, on the wasm backend,
 * saves it, writes text with it, and compares its decoding with that of a softmax model of the same size.
 *
 * `--seconds N` sets the time for training, which is most of the whole; `--steps N` trains that many steps instead;
 * `--out DIR` and `--positions 64,256` are the folder and the table's positions. Everything below is plain use of the
 * public API.
 */
import {availableParallelism} from 'node:os';
import {parseArgs} from 'node:util';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-wasm';
import {generation, models, patches, training} from 'tfjs-linear-attention';
import {measureDecoding, printTable} from './decode_table.mjs';
import {mobyDick} from './moby_dick.mjs';

const SIZE = {dModel: 128, numLayers: 3, numHeads: 4};
/** Comes nearest to softmax's loss on this text, among the maps whose state is as small (benchmarks/RESULTS.md). */
const FEATURE_MAP = 'exp';
/** Two threads of 4 sequences each; on one core the same batches, one after the other. */
const BATCH = {batchSize: 4, length: 128, accumulate: 2, workers: Math.min(2, availableParallelism())};
const LEARNING_RATE = 4e-3;
/** Steps that are timed to plan a run. In the first half of them V8 is still compiling. */
const PLANNING_STEPS = 16;
const VALIDATION_WINDOWS = 32;
const PROMPT = 'The whale ';
const CHARACTERS = 500;
const SEED = 1;

const {values} = parseArgs({
  options: {
    seconds: {type: 'string', default: '85'},
    steps: {type: 'string'},
    out: {type: 'string', default: 'runs/moby-dick'},
    positions: {type: 'string', default: '64,256,1024,4096'},
  },
});
const seconds = Number(values.seconds);
if (!(seconds > 0)) throw new Error(`expected --seconds to be a number above 0; got '${values.seconds}'`);
const positions = values.positions.split(',').map(Number);

/**
 * Writes after the prompt, in windows as long as those of the training: features of exp that rotary positions turn have
 * not been learned beyond, and text falls apart there (benchmarks/experiments/results/positions.md). At the end of a
 * window a new one begins with the last half of it.
 */
async function* writing(model, tokenizer) {
  let text = PROMPT;
  for (let window = 0, left = CHARACTERS; left > 0; window++) {
    const start = text.slice(-BATCH.length / 2);
    const maxNewTokens = Math.min(left, BATCH.length - start.length);
    const options = {tokenizer, maxNewTokens, temperature: 0.7, seed: SEED + window};
    for await (const piece of generation.generate(model, start, options)) {
      text += piece;
      yield piece;
    }
    left -= maxNewTokens;
  }
}

/** Updates that fit in the time, from the speed of a model that is thrown away. */
async function stepsFor(time, vocabSize, ids) {
  const model = models.transformer({vocabSize, ...SIZE, featureMap: FEATURE_MAP, seed: SEED});
  const times = [];
  let last = performance.now();
  await training.train(model, ids, {
    ...BATCH,
    steps: PLANNING_STEPS,
    onProgress() {
      times.push((performance.now() - last) / 1000);
      last = performance.now();
    },
  });
  model.dispose();
  return Math.max(20, Math.floor((0.8 * time) / Math.min(...times.slice(PLANNING_STEPS / 2))));
}

async function trainOnText(model, ids, held, time) {
  const steps = values.steps ? Number(values.steps) : await stepsFor(time, model.outputs[0].shape[2], ids);
  const printer = training.progressPrinter(process.stdout);
  const limit = new AbortController();
  const timer = values.steps ? undefined : setTimeout(() => limit.abort(), time * 1000);
  const result = await training.train(
    model,
    {train: ids, validation: held},
    {
      ...BATCH,
      steps,
      learningRate: LEARNING_RATE,
      every: Math.ceil(steps / 5),
      seed: SEED,
      signal: limit.signal,
      onProgress: printer.update,
    },
  );
  clearTimeout(timer);
  printer.end();
  return result;
}

tf.enableProdMode();
await tf.setBackend('wasm');
patches.wasmTraining();
patches.wasmMatMul();

const text = mobyDick();
const tokenizer = models.characterTokenizer(text);
const {vocabSize} = tokenizer;
const ids = tokenizer.encode(text);
const cut = ids.length - (VALIDATION_WINDOWS * BATCH.length + 1);
const model = models.transformer({
  vocabSize,
  ...SIZE,
  attention: 'linear',
  featureMap: FEATURE_MAP,
  seed: SEED,
});
console.log(
  `Moby-Dick, ${ids.length} characters, ${vocabSize} different ones. Linear attention, ${model.countParams()} parameters. wasm.\n`,
);

const result = await trainOnText(model, ids.slice(0, cut), ids.slice(cut), seconds);
await training.saveModel(model, values.out);
console.log(
  `\n${result.step} steps in ${Math.round(result.seconds)} s, ${Math.round(result.tokensPerSecond)} tokens/s` +
    `${result.validation ? `, validation ${result.validation.bitsPerCharacter.toFixed(3)} bits per character` : ''}. ` +
    `Saved in ${values.out}.\n`,
);

console.log(
  `It writes in windows of ${BATCH.length} characters, as it was trained, each begun with the last half of the one before:\n`,
);
process.stdout.write(PROMPT);
for await (const piece of writing(model, tokenizer)) process.stdout.write(piece);

const softmax = models.transformer({vocabSize, ...SIZE, attention: 'softmax', seed: SEED});
console.log('\n\nDecoding, beside a softmax model of the same size:\n');
printTable(measureDecoding({linear: model, softmax, ids, positions}));
