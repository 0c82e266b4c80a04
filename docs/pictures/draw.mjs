/**
 * Draws the guides' pictures from values that the built package computes.
 *
 *     npm run build && node docs/pictures/draw.mjs [folder]
 *
 * The folder is this one unless another is named.
 */
import {mkdirSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-wasm';
import {
  disposeState,
  featureMaps,
  generation,
  impliedAttention,
  linearAttention,
  linearAttentionStep,
  models,
  softmaxAttention,
  zeroState,
} from 'tfjs-linear-attention';
import {chart, heatMap, picture, text} from './svg.mjs';

const folder = process.argv[2] ?? dirname(fileURLToPath(import.meta.url));
tf.enableProdMode();
await tf.setBackend('wasm');

const normal = (shape, deviation, seed) => tf.randomNormal(shape, 0, deviation, 'float32', seed);

/** Weights of one head on the same queries and keys: softmax's, and those that feature maps imply. */
function weights() {
  const [N, r, cell] = [24, 16, 7];
  const [q, k] = [1, 2].map((seed) => normal([1, 1, N, r], 1.4, seed));
  const units = tf.reshape(tf.eye(N), [1, 1, N, N]);
  const panels = [
    ['softmax', softmaxAttention(q, k, units, {causal: true})],
    ...['exp', 'elu', 'taylor2'].map((featureMap) => [
      featureMap,
      impliedAttention(q, k, {featureMap, causal: true}),
    ]),
  ];
  // The root makes small weights visible; all panels share one scale.
  const marks = panels.map(([title, w], i) =>
    heatMap(28 + i * 188, 40, tf.sqrt(w).arraySync()[0][0], {cell, most: 1, title}),
  );
  return picture(
    776,
    236,
    'Attention weights of softmax and of three feature maps on the same queries and keys',
    [
      marks,
      text(28, 226, 'A row is a query, a column a key; dark is 1, white is 0 (the root of the weight).', {
        anchor: 'start',
      }),
    ],
  );
}

/** One token's update of the state: s before, phi(k) v^T, s after. */
function recurrence() {
  const [N, r, cell] = [5, 10, 14];
  const [q, k, v] = [1, 2, 3].map((seed) => normal([1, 1, N, r], 1, seed));
  const at = (x, from, size) => tf.slice(x, [0, 0, from, 0], [1, 1, size, r]);
  const last = [q, k, v].map((x) => tf.reshape(at(x, N - 1, 1), [1, 1, r]));
  const before = linearAttention(...[q, k, v].map((x) => at(x, 0, N - 1)), {
    causal: true,
    returnState: true,
  }).state;
  const empty = zeroState({batchSize: 1, numHeads: 1, keyDim: r, valueDim: r});
  const added = linearAttentionStep(...last, empty).state;
  const after = linearAttentionStep(...last, before).state;
  const panels = [
    [`s after ${N - 1} tokens`, before],
    ['φ(k) vᵀ of the next token', added],
    [`s after ${N} tokens`, after],
  ];
  const size = r * cell;
  const marks = panels.map(([title, {s}], i) => [
    heatMap(30 + i * (size + 70), 40, s.arraySync()[0][0], {cell, most: 6, title}),
    text(30 + i * (size + 70) + size + 35, 40 + size / 2 + 8, ['+', '=', ''][i], {size: 24}),
  ]);
  for (const state of [before, empty, added, after]) disposeState(state);
  return picture(
    30 + 3 * (size + 70),
    60 + size,
    'The state before a token, what the token adds, and the state after it',
    marks,
  );
}

/** What a stream carries, in bytes, and what a token costs, in multiply-adds, by position. */
function cost() {
  const [dModel, numHeads] = [128, 4];
  const positions = [1, 16, 64, 256, 1024, 4096];
  const bytes = ['linear', 'softmax'].map((attention) => {
    const model = models.transformer({vocabSize: 8, dModel, numLayers: 1, numHeads, ffnDim: 8, attention});
    const stream = generation.stream(model);
    const points = positions.map((position) => {
      while (stream.position < position) {
        stream.prefill(new Int32Array(Math.min(256, position - stream.position))).dispose();
      }
      return [position, stream.stateBytes];
    });
    stream.dispose();
    model.dispose();
    return {name: attention, points};
  });
  const r = dModel / numHeads;
  const work = [
    {name: 'linear', points: positions.map((t) => [t, 2 * r * r])},
    {name: 'softmax', points: positions.map((t) => [t, 2 * r * t])},
  ];
  const x = {
    label: 'position',
    log: true,
    ticks: [
      [1, '1'],
      [16, '16'],
      [256, '256'],
      [4096, '4096'],
    ],
  };
  return picture(
    820,
    300,
    'Bytes that a stream carries and multiply-adds per token, by position, for linear and softmax attention',
    [
      chart(84, 44, 290, 196, {
        title: `bytes that a stream carries (1 layer, ${numHeads} heads of ${r})`,
        x,
        y: {
          label: 'bytes',
          log: true,
          ticks: [
            [1e3, '1 kB'],
            [1e4, '10 kB'],
            [1e5, '100 kB'],
            [1e6, '1 MB'],
            [1e7, '10 MB'],
          ],
        },
        series: bytes,
      }),
      chart(500, 44, 290, 196, {
        title: `multiply-adds of a token and head, r = d = ${r}`,
        x,
        y: {
          label: 'multiply-adds',
          log: true,
          ticks: [
            [10, '10'],
            [100, '100'],
            [1e3, '1 k'],
            [1e4, '10 k'],
            [1e5, '100 k'],
            [1e6, '1 M'],
          ],
        },
        series: work,
      }),
    ],
  );
}

/** The maps that act value by value. */
function maps() {
  const xs = Array.from({length: 121}, (_, i) => -3 + i / 20);
  const x = tf.tensor1d(xs);
  const labels = {elu: [2.6, 3.7], relu: [3, 2.2], squaredRelu: [3, 4.6], exp: [1.45, 4.6]};
  const series = Object.keys(labels).map((name) => {
    const values = featureMaps[name]().queries(x).dataSync();
    const points = xs.map((value, i) => [value, values[i]]).filter(([, value]) => value <= 5);
    return {name, points, label: labels[name]};
  });
  const ticks = (from, to) => Array.from({length: to - from + 1}, (_, i) => [from + i, String(from + i)]);
  return picture(420, 300, 'The feature maps elu, relu, squaredRelu and exp of one value', [
    chart(64, 40, 320, 200, {
      title: 'φ(x)',
      x: {label: 'x', ticks: ticks(-3, 3)},
      y: {label: '', ticks: ticks(0, 5)},
      series,
    }),
  ]);
}

/** How far FAVOR+ is from softmax attention, by number of features and norm of queries and keys. */
function favor() {
  const [N, r] = [64, 16];
  const counts = [16, 32, 64, 128, 256, 512, 1024, 2048];
  const series = [0.5, 1, 2, 4].map((norm) => {
    const points = counts.map((numFeatures) => {
      const errors = [1, 2, 3].map((seed) =>
        tf.tidy(() => {
          const [q, k] = [10, 20].map((base) => normal([1, 1, N, r], norm / Math.sqrt(r), base + seed));
          const v = normal([1, 1, N, r], 1, 30 + seed);
          const exact = softmaxAttention(q, k, v);
          const close = linearAttention(q, k, v, {featureMap: featureMaps.favor({numFeatures, seed})});
          return tf.div(tf.norm(tf.sub(close, exact)), tf.norm(exact)).dataSync()[0];
        }),
      );
      return [numFeatures, errors.reduce((a, b) => a + b) / errors.length];
    });
    return {name: `norm ${norm}`, points, label: points[2]};
  });
  return picture(
    520,
    320,
    'Relative error of FAVOR+ against softmax attention, by number of features and norm',
    [
      chart(84, 44, 390, 216, {
        title: `favor against softmax attention (r = ${r}, ${N} keys)`,
        x: {label: 'random features', log: true, ticks: counts.map((n) => [n, String(n)])},
        y: {
          label: 'relative error',
          log: true,
          ticks: [
            [1e-3, '0.1 %'],
            [1e-2, '1 %'],
            [0.1, '10 %'],
            [1, '100 %'],
            [10, '1000 %'],
          ],
        },
        series,
      }),
    ],
  );
}

mkdirSync(folder, {recursive: true});
for (const [name, draw] of Object.entries({weights, recurrence, cost, maps, favor})) {
  writeFileSync(join(folder, `${name}.svg`), tf.tidy(draw));
}
