/**
 * Sequences of unequal length in one batch: where padding may stand, where the mask goes, and that it changes nothing.
 *
 *     node examples/node/masks.mjs
 *
 * A batch is a rectangle, so short rows are filled up with padding. The mask [B,N] has 1 where a token is there and 0 where it is
 * padding. What stands under a 0 has no effect at all, not even NaN.
 */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-wasm';
import {generation, layers, linearAttention, models} from 'tfjs-linear-attention';

await tf.setBackend('wasm');

/** Largest difference between two tensors. */
const difference = (a, b) => tf.tidy(() => tf.max(tf.abs(tf.sub(a, b))).dataSync()[0]);
const report = (what, value) => console.log(`  ${what.padEnd(72)} ${value.toExponential(1)}`);
const results = [];
const compare = (what, a, b) => {
  const value = difference(a, b);
  results.push(value);
  report(what, value);
};

console.log('1. The operation: 5 tokens alone, and with 3 of padding before, behind and in between');
tf.tidy(() => {
  const [q, k, v] = [1, 2, 3].map((seed) => tf.randomNormal([1, 2, 5, 8], 0, 1, 'float32', seed));
  const alone = linearAttention(q, k, v);
  const nothing = tf.fill([1, 2, 3, 8], Number.NaN); // the worst padding there is
  const tokens = (x, from, to) => tf.slice(x, [0, 0, from, 0], [-1, -1, to - from, -1]);
  const placed = {
    before: (x) => tf.concat([nothing, x], 2),
    behind: (x) => tf.concat([x, nothing], 2),
    'in between': (x) => tf.concat([tokens(x, 0, 2), nothing, tokens(x, 2, 5)], 2),
  };
  const masks = {
    before: [[0, 0, 0, 1, 1, 1, 1, 1]],
    behind: [[1, 1, 1, 1, 1, 0, 0, 0]],
    'in between': [[1, 1, 0, 0, 0, 1, 1, 1]],
  };
  for (const [where, pad] of Object.entries(placed)) {
    // Masks are about keys and values. Queries need none: a query at a padded place gives a row that nobody reads.
    compare(`padding ${where}`, linearAttention(q, pad(k), pad(v), {mask: masks[where]}), alone);
  }
});

console.log('2. A bidirectional encoder of vectors: the mask is a further input of the layer');
{
  // tfjs hands a mask on by itself only from Embedding (maskZero) and Masking. An input says it openly, and works everywhere;
  // cross attention takes it as the last one, too: [query, value, mask] or [query, value, key, mask].
  const vectors = tfl.input({shape: [null, 6]});
  const mask = tfl.input({shape: [null]});
  const attended = layers.linearAttention({numHeads: 2, keyDim: 8, seed: 1}).apply([vectors, mask]);
  const encoder = tfl.model({inputs: [vectors, mask], outputs: attended});
  tf.tidy(() => {
    const x = tf.randomNormal([2, 4, 6], 0, 1, 'float32', 4);
    const short = tf.slice(x, [1, 0, 0], [1, 3, 6]);
    const alone = encoder.predict([short, tf.ones([1, 3])]);
    // Row 0 has four vectors, row 1 three, and something else in the place of its fourth.
    const together = encoder.predict([
      x,
      tf.tensor2d([
        [1, 1, 1, 1],
        [1, 1, 1, 0],
      ]),
    ]);
    compare('row of 3 beside a row of 4', tf.slice(together, [1, 0, 0], [1, 3, 6]), alone);
  });
  encoder.dispose();
}

console.log('3. Ids in a classifier: id 0 is padding (maskZero), and the mean leaves it out');
{
  const classifier = models.transformer({
    vocabSize: 20,
    maskZero: true,
    causal: false,
    numClasses: 3,
    dModel: 16,
    numLayers: 2,
    numHeads: 2,
    seed: 1,
  });
  tf.tidy(() => {
    const predict = (rows) => classifier.predict(tf.tensor2d(rows, undefined, 'int32'));
    const together = predict([
      [7, 3, 9, 4, 12],
      [5, 8, 0, 0, 0],
    ]);
    compare('row of 2 beside a row of 5', tf.slice(together, [1, 0], [1, 3]), predict([[5, 8]]));
  });
  classifier.dispose();
}

console.log('4. A stream: prompts of unequal length in one batch, padded on either side, then a step');
{
  const model = models.transformer({vocabSize: 20, dModel: 16, numLayers: 2, numHeads: 2, seed: 2});
  const prompts = [
    [7, 3, 9, 4, 12],
    [5, 8],
  ];
  /** Logits after the prompts and one more token each. */
  const run = (batchSize, ids, mask) => {
    const stream = generation.stream(model, {batchSize});
    stream.prefill(ids, mask && {mask}).dispose();
    // Padding does not count as a position either: each row goes on where its own prompt ended.
    const positions = stream.positions.join(' and ');
    const logits = stream.step(Array(batchSize).fill(1));
    stream.dispose();
    return {logits, positions};
  };
  const alone = prompts.map((prompt) => run(1, prompt).logits);
  const one = tf.concat(alone, 0);
  const padded = {
    left: [
      [prompts[0], [0, 0, 0, 5, 8]],
      [
        [1, 1, 1, 1, 1],
        [0, 0, 0, 1, 1],
      ],
    ],
    right: [
      [prompts[0], [5, 8, 0, 0, 0]],
      [
        [1, 1, 1, 1, 1],
        [1, 1, 0, 0, 0],
      ],
    ],
  };
  for (const [side, [ids, mask]] of Object.entries(padded)) {
    const {logits, positions} = run(2, ids, mask);
    compare(`padded on the ${side}; positions ${positions} before the step`, logits, one);
    logits.dispose();
  }
  tf.dispose([...alone, one]);
  model.dispose();
}

const most = Math.max(...results);
console.log(
  `\nLargest difference between padded and alone in ${results.length} comparisons: ${most.toExponential(1)}, ` +
    `${most < 1e-5 ? 'rounding' : 'which is more than rounding'}; ${tf.memory().numTensors} tensors left over.`,
);
