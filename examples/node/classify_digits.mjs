/**
 * Classifies handwritten digits with a bidirectional encoder: a small vision transformer whose attention is linear.
 *
 *     node examples/node/classify_digits.mjs [--quick]
 *
 * An image of 28 x 28 pixels becomes a sequence of 16 patches of 7 x 7. A picture has no past and no future, so the attention
 * is not causal: every patch sees every other one, and the mean over all of them is classified.
 */
import {createRequire} from 'node:module';
import {parseArgs} from 'node:util';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-wasm';
import {models, patches, training} from 'tfjs-linear-attention';

const {quick} = parseArgs({options: {quick: {type: 'boolean', default: false}}}).values;
const [SIDE, PATCH] = [28, 7];
const PATCHES = (SIDE / PATCH) ** 2;
const TRAIN = quick ? 60 : 400; // images of each digit
const TEST = quick ? 20 : 100;
const EPOCHS = quick ? 6 : 8;

/** Pixels 0..1 of one digit's images, as the package `mnist` (MIT) ships them: one after the other, row by row. */
function pixelsOf(digit) {
  return createRequire(import.meta.url)(`mnist/src/digits/${digit}.json`).data;
}

/** 16 patches of 49 pixels each: what a sentence's words are to a language model. */
function toPatches(image) {
  return Array.from({length: PATCHES}, (_, p) => {
    const top = Math.floor(p / (SIDE / PATCH)) * PATCH;
    const left = (p % (SIDE / PATCH)) * PATCH;
    return Array.from(
      {length: PATCH ** 2},
      (__, i) => image[(top + Math.floor(i / PATCH)) * SIDE + left + (i % PATCH)],
    );
  });
}

/** The first images of each digit to train on, the next to test on. Digits take turns, so every batch has all of them. */
function load() {
  const train = [];
  const test = [];
  const all = Array.from({length: 10}, (_, digit) => pixelsOf(digit));
  for (let n = 0; n < TRAIN + TEST; n++) {
    all.forEach((pixels, digit) => {
      const image = pixels.slice(n * SIDE ** 2, (n + 1) * SIDE ** 2);
      (n < TRAIN ? train : test).push({image, digit});
    });
  }
  return {train, test};
}

const tensorsOf = (examples) => ({
  x: tf.tensor3d(
    examples.map(({image}) => toPatches(image)),
    [examples.length, PATCHES, PATCH ** 2],
  ),
  y: tf.tensor1d(
    examples.map(({digit}) => digit),
    'int32',
  ),
});

function draw(image) {
  for (let row = 0; row < SIDE; row += 2) {
    const line = image.slice(row * SIDE, (row + 1) * SIDE).map((value) => ' .:*#'[Math.round(4 * value)]);
    console.log(`    ${line.join('')}`);
  }
}

tf.enableProdMode();
await tf.setBackend('wasm');
patches.wasmTraining(); // stock wasm lacks kernels that training needs
patches.wasmMatMul(); // and its matMul is slow in the shapes of a backward pass

const {train, test} = load();
const model = models.transformer({
  inputDim: PATCH ** 2, // vectors go in, not ids
  causal: false, // the encoder's difference to a language model
  position: 'learned', // a patch's place on the grid; 16 of them
  maxLength: PATCHES,
  numClasses: 10, // mean over the patches, then 10 logits
  dModel: 64,
  numLayers: 2,
  numHeads: 4,
  ffnDim: 128,
  seed: 1,
});
// tfjs's own losses take probabilities and one-hot labels; this compiles for logits and digits as they are.
training.compile(model, {optimizer: training.adamW({learningRate: 3e-3}), metrics: ['accuracy']});
console.log(
  `${train.length} images to train on, ${test.length} to test on; ${model.countParams()} parameters.`,
);

const data = tensorsOf(train);
await model.fit(data.x, data.y, {
  epochs: EPOCHS,
  batchSize: 25,
  shuffle: false, // tfjs shuffles by Math.random; in order, two runs print the same
  verbose: 0,
  callbacks: {
    onEpochEnd: (epoch, {loss, acc}) =>
      console.log(`epoch ${epoch + 1}: loss ${loss.toFixed(3)}, accuracy ${(100 * acc).toFixed(1)} %`),
  },
});

const held = tensorsOf(test);
const guesses = tf.tidy(() => Array.from(tf.argMax(model.predict(held.x), 1).dataSync()));
const right = guesses.filter((guess, i) => guess === test[i].digit).length;

// One that it got wrong says more than ten that it got right.
const wrong = guesses.findIndex((guess, i) => guess !== test[i].digit);
if (wrong >= 0) {
  console.log(`\nA ${test[wrong].digit} that it took for a ${guesses[wrong]}:\n`);
  draw(test[wrong].image);
}
console.log(
  `\n${right} of ${test.length} unseen images right: ${((100 * right) / test.length).toFixed(1)} %`,
);
tf.dispose([data.x, data.y, held.x, held.y]);
model.dispose();
