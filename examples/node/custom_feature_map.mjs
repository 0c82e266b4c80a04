/**
 * A feature map of one's own, with weights that are trained, saved and loaded like every other.
 *
 *     node examples/node/custom_feature_map.mjs [--quick]
 *
 * Linear attention compares by phi(q) . phi(k). The default phi, elu(x) + 1, grows slowly, so that no key stands out much from the
 * others. Here phi(x) = exp(a x): a large a makes attention sharp, a small one makes it even, and each head learns its own.
 */
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {parseArgs} from 'node:util';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-backend-wasm';
import {models, patches, registerFeatureMap, training} from 'tfjs-linear-attention';
import {mobyDick} from './moby_dick.mjs';

const {quick} = parseArgs({options: {quick: {type: 'boolean', default: false}}}).values;
const STEPS = quick ? 100 : 500;
const LENGTH = 64;

// Registered by name, because a saved model names its map. Weights are declared here and made by the layer, one set for each layer
// that uses the map: the map itself holds no tensors and can serve many.
registerFeatureMap('sharpened', ({start = 1} = {}) => {
  const phi = (x, {weights, headAxis = 1}) => {
    // a [H] along x's axis of heads, which is not always the same: layers have [B,N,H,r], operations [B,H,N,r].
    const shape = x.shape.map((size, axis) => (axis === headAxis ? size : 1));
    return tf.exp(tf.mul(x, tf.reshape(weights.sharpness, shape)));
  };
  return {
    name: 'sharpened',
    eps: 0, // added to the denominator, which exp keeps above 0
    dim: (r) => r, // as many features as inputs
    weights: (_, numHeads) => [
      {
        name: 'sharpness',
        shape: [numHeads],
        initializer: new Float32Array(numHeads).fill(start),
        trainable: true,
      },
    ],
    queries: phi,
    keys: phi,
    getConfig: () => ({start}), // what the factory is called with when a saved model is loaded
  };
});

tf.enableProdMode();
await tf.setBackend('wasm');
patches.wasmMatMul();

const text = mobyDick().slice(0, 300_000);
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);
const cut = ids.length - 8_000;

async function trained(featureMap) {
  const model = models.transformer({
    vocabSize: tokenizer.vocabSize,
    featureMap, // a name; or the map itself: featureMap: myMap({start: 2})
    dModel: quick ? 32 : 64,
    numLayers: 2,
    numHeads: 2,
    seed: 1,
  });
  const run = {steps: STEPS, batchSize: 8, length: LENGTH, learningRate: 1e-2, seed: 1};
  await training.train(model, ids.subarray(0, cut), run);
  return model;
}
const bits = async (model) =>
  (await training.evaluate(model, ids.subarray(cut), {length: LENGTH})).bitsPerCharacter.toFixed(3);
const sharpness = (model) =>
  model.weights
    .filter(({originalName}) => originalName.endsWith('sharpness'))
    .map((weight) => Array.from(weight.read().dataSync(), (a) => a.toFixed(2)).join(', '))
    .join(' | ');

const plain = await trained('elu');
const sharp = await trained('sharpened');
console.log(`bits per character of unseen text after ${STEPS} steps, less is better:`);
console.log(`  elu         ${await bits(plain)}`);
console.log(`  sharpened   ${await bits(sharp)}`);
console.log(`sharpness of each layer's heads, 1.00 at the start: ${sharpness(sharp)}`);

const folder = mkdtempSync(join(tmpdir(), 'feature-map-'));
await training.saveModel(sharp, folder);
const loaded = await training.loadModel(folder); // in another process: register the map first, then load
rmSync(folder, {recursive: true});
console.log(`\nSaved and loaded: sharpness ${sharpness(loaded)}; ${await bits(loaded)} bits per character.`);
for (const model of [plain, sharp, loaded]) model.dispose();
