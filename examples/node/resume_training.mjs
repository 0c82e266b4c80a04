/**
 * Stops a training run and resumes it from its checkpoint, in a new model, and shows that nothing is lost by it: the same losses
 * and the same weights, bit for bit, as the run that was never stopped.
 *
 *     node examples/node/resume_training.mjs [--quick]
 *
 * A checkpoint holds more than the weights: AdamW's two moments of every weight, and the number of steps, on which the learning
 * rate, the order of the data and the dropout depend. Weights alone would go on with a cold optimizer and the first data again.
 */
import {mkdtempSync, rmSync, statSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {parseArgs} from 'node:util';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-wasm';
import {models, patches, training} from 'tfjs-linear-attention';
import {mobyDick} from './moby_dick.mjs';

const {quick} = parseArgs({options: {quick: {type: 'boolean', default: false}}}).values;
const STEPS = quick ? 20 : 120;
const STOP_AT = Math.floor(STEPS / 3);

tf.enableProdMode();
await tf.setBackend('wasm');
patches.wasmMatMul();

const text = mobyDick().slice(0, 100_000);
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);
const folder = mkdtempSync(join(tmpdir(), 'resume-'));
const checkpoint = join(folder, 'checkpoint.bin');

const newModel = () =>
  models.transformer({
    vocabSize: tokenizer.vocabSize,
    dModel: quick ? 32 : 64,
    numLayers: 2,
    numHeads: 2,
    dropout: 0.1, // random too, and resumed too
    seed: 1,
  });
// A run is its data and these. `steps` is where the whole run ends, also in a call that will be stopped before: the learning
// rate's way down is laid out over all of them.
const run = {steps: STEPS, batchSize: 8, length: 64, learningRate: 5e-3, seed: 1};

const whole = newModel();
const uninterrupted = await training.train(whole, ids, run);
console.log(`in one go:    steps 1 to ${STEPS}, last loss ${uninterrupted.loss.toFixed(4)}`);

// Ctrl-C, a closed tab, a time limit: an AbortSignal ends the run after its current step, and the checkpoint is written.
const controller = new AbortController();
const stopped = newModel();
const first = await training.train(stopped, ids, {
  ...run,
  checkpoint,
  signal: controller.signal,
  onProgress: ({step}) => step === STOP_AT && controller.abort(),
});
console.log(
  `stopped:      steps 1 to ${first.step} (${first.stopped}), a checkpoint of ${statSync(checkpoint).size} bytes`,
);
stopped.dispose();

// As another process would, on another day: all that is left is the checkpoint and the program's own settings.
const fresh = newModel();
const second = await training.train(fresh, ids, {...run, checkpoint, resume: true});
console.log(`resumed:      steps ${first.step + 1} to ${second.step}, last loss ${second.loss.toFixed(4)}`);

const losses = [...first.history, ...second.history].map(({loss}) => loss);
const sameLosses = losses.filter((loss, i) => loss === uninterrupted.history[i].loss).length;
const weights = whole.getWeights().map((weight) => weight.dataSync());
const others = fresh.getWeights().map((weight) => weight.dataSync());
const count = weights.reduce((sum, {length}) => sum + length, 0);
const sameWeights = weights.reduce(
  (sum, values, w) => sum + values.filter((value, i) => Object.is(value, others[w][i])).length,
  0,
);
console.log(
  `\n${sameLosses} of ${STEPS} losses and ${sameWeights} of ${count} weights are the same, bit for bit.`,
);
whole.dispose();
fresh.dispose();
rmSync(folder, {recursive: true});
