/**
 * What linear attention costs in quality: the same model trained on the same text with linear and with softmax attention, the
 * same seed, batches and number of steps; validation bits per character of both, as a Markdown table.
 *
 *     npm run build && node benchmarks/linear_vs_softmax.mjs [--steps 600] [--seeds 1,2] [--backend wasm] ...
 *
 * The validation text is the last 5 % of Moby-Dick, which neither model is trained on.
 */
import os from 'node:os';
import {parseArgs} from 'node:util';
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-wasm';
import * as tf from '@tensorflow/tfjs-core';
import {models, patches, training} from 'tfjs-linear-attention';
import {mobyDick} from '../examples/node/moby_dick.mjs';

const {values} = parseArgs({
  options: {
    steps: {type: 'string', default: '600'},
    seeds: {type: 'string', default: '1'},
    'd-model': {type: 'string', default: '128'},
    layers: {type: 'string', default: '2'},
    heads: {type: 'string', default: '4'},
    batch: {type: 'string', default: '8'},
    length: {type: 'string', default: '128'},
    lr: {type: 'string', default: '0.004'},
    maps: {type: 'string', default: 'elu'},
    backend: {type: 'string', default: 'wasm'},
  },
});
const [steps, dModel, numLayers, numHeads, batchSize, length, learningRate] = [
  'steps',
  'd-model',
  'layers',
  'heads',
  'batch',
  'length',
  'lr',
].map((name) => Number(values[name]));
const VALIDATION = 0.05;

tf.enableProdMode();
await tf.setBackend(values.backend);
await tf.ready();
patches.wasmTraining();
patches.wasmMatMul();
const text = mobyDick();
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);
const cut = Math.floor(ids.length * (1 - VALIDATION));
const [train, validation] = [ids.slice(0, cut), ids.slice(cut)];

const kinds = [
  {name: 'softmax', attention: 'softmax'},
  ...values.maps
    .split(',')
    .map((featureMap) => ({name: `linear, ${featureMap}`, attention: 'linear', featureMap})),
];

async function measure({name, ...kind}, seed) {
  const model = models.transformer({
    vocabSize: tokenizer.vocabSize,
    dModel,
    numLayers,
    numHeads,
    position: 'rotary',
    seed,
    ...kind,
  });
  const result = await training.train(model, train, {steps, batchSize, length, learningRate, seed});
  const options = {batchSize, length};
  const {bitsPerCharacter} = await training.evaluate(model, validation, options);
  const parameters = model.countParams();
  model.dispose();
  console.error(`${name}, seed ${seed}: ${bitsPerCharacter.toFixed(3)} bits, ${result.seconds.toFixed(0)} s`);
  return {bits: bitsPerCharacter, tokensPerSecond: result.tokensPerSecond, parameters};
}

const rows = [];
for (const kind of kinds) {
  const runs = [];
  for (const seed of values.seeds.split(',').map(Number)) runs.push(await measure(kind, seed));
  const mean = (key) => runs.reduce((sum, run) => sum + run[key], 0) / runs.length;
  rows.push({
    name: kind.name,
    bits: mean('bits'),
    all: runs.map(({bits}) => bits.toFixed(3)).join(', '),
    tokensPerSecond: mean('tokensPerSecond'),
    parameters: runs[0].parameters,
  });
}

const [softmax] = rows;
console.log(
  `Moby-Dick, ${train.length} characters to train on, ${validation.length} to validate on; d = ${dModel}, ${numLayers} layers, ` +
    `${numHeads} heads, rotary positions, ${softmax.parameters} parameters; ${steps} steps of ${batchSize} x ${length} characters, ` +
    `learning rate ${learningRate}, seeds ${values.seeds}; ${values.backend}, Node ${process.version}, ${os.cpus()[0]?.model}.\n`,
);
console.log('| attention | validation bits per character | by seed | difference | training, tokens/s |');
console.log('|---|---|---|---|---|');
for (const {name, bits, all, tokensPerSecond} of rows) {
  const difference = bits - softmax.bits;
  console.log(
    `| ${name} | ${bits.toFixed(3)} | ${all} | ${difference === 0 ? '' : `${difference > 0 ? '+' : ''}${difference.toFixed(3)}`} | ` +
      `${Math.round(tokensPerSecond)} |`,
  );
}
