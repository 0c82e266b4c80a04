/**
 * A character language model trained by tfjs's own `fit`, with callbacks: a sample of text after every epoch, the best weights
 * kept, and an end when the validation loss stops falling.
 *
 *     node examples/node/fit_callbacks.mjs [--quick]
 *
 * The text is small on purpose: the model begins to learn it by heart, its loss on unseen text rises again, and early stopping
 * has something to do. `training.train` (main_job.mjs, resume_training.mjs) is the shorter way when `fit` is not needed.
 */
import {parseArgs} from 'node:util';
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-wasm';
import {generation, models, patches, training} from 'tfjs-linear-attention';
import {mobyDick} from './moby_dick.mjs';

const {quick} = parseArgs({options: {quick: {type: 'boolean', default: false}}}).values;
const LENGTH = quick ? 32 : 64;
const TRAIN = quick ? 40 : 240; // windows
const HELD = quick ? 16 : 60;
const MOST_EPOCHS = 40;
const PROMPT = 'The whale ';

tf.enableProdMode();
await tf.setBackend('wasm');
patches.wasmTraining();
patches.wasmMatMul();

const text = mobyDick().slice(0, (TRAIN + HELD) * LENGTH + 1);
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);

/** Windows side by side, [count, LENGTH], and the characters that follow each of theirs. */
function windows(first, count) {
  const [from, to] = [first * LENGTH, (first + count) * LENGTH];
  const shape = [count, LENGTH];
  return {
    x: tf.tensor2d(ids.subarray(from, to), shape, 'int32'),
    y: tf.tensor2d(ids.subarray(from + 1, to + 1), shape, 'int32'),
  };
}
const train = windows(0, TRAIN);
const held = windows(TRAIN, HELD);

const model = models.transformer({
  vocabSize: tokenizer.vocabSize,
  dModel: quick ? 32 : 64,
  numLayers: 2,
  numHeads: 2,
  featureMap: 'exp',
  seed: 1,
});
// tfjs has no loss for ids against logits, and refuses targets [B,T] where the output is [B,T,V]. This mends both.
training.compile(model, {optimizer: training.adamW({learningRate: 1e-2})});

/** Writes some text after each epoch, so that one sees what the loss means. */
const sampler = new tfl.CustomCallback({
  async onEpochEnd(epoch, {loss, val_loss: validation}) {
    let sample = '';
    const options = {tokenizer, maxNewTokens: 50, temperature: 0.7, seed: 1};
    for await (const piece of generation.generate(model, PROMPT, options)) sample += piece;
    console.log(
      `epoch ${String(epoch + 1).padStart(2)}  loss ${loss.toFixed(3)}  validation ${validation.toFixed(3)}  ` +
        JSON.stringify(PROMPT + sample),
    );
  },
});

/** tfjs's early stopping cannot bring the best weights back, as Keras's can: this does. */
const best = {loss: Number.POSITIVE_INFINITY, epoch: 0, weights: []};
const keepBest = new tfl.CustomCallback({
  onEpochEnd(epoch, {val_loss: validation}) {
    if (validation < best.loss) {
      tf.dispose(best.weights);
      // The model's weights go on changing in place: copies are needed.
      const weights = model.getWeights().map((weight) => tf.clone(weight));
      Object.assign(best, {loss: validation, epoch: epoch + 1, weights});
    }
  },
  onTrainEnd() {
    model.setWeights(best.weights);
    tf.dispose(best.weights);
  },
});

const {history} = await model.fit(train.x, train.y, {
  validationData: [held.x, held.y],
  epochs: MOST_EPOCHS,
  batchSize: 10,
  shuffle: false, // tfjs shuffles by Math.random; in order, two runs print the same
  verbose: 0,
  // Three epochs without improvement end it.
  callbacks: [sampler, keepBest, tfl.callbacks.earlyStopping({monitor: 'val_loss', patience: 3})],
});

const evaluated = model.evaluate(held.x, held.y, {batchSize: 10});
const [loss] = evaluated.dataSync();
console.log(
  `\nStopped after ${history.loss.length} of ${MOST_EPOCHS} epochs. The weights are those of epoch ${best.epoch} again: ` +
    `validation loss ${loss.toFixed(3)}; the last epoch's was ${history.val_loss.at(-1).toFixed(3)}.`,
);
tf.dispose([evaluated, train.x, train.y, held.x, held.y]);
model.dispose();
