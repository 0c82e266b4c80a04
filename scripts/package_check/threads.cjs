/** The installed copy finds the file that its worker threads run. */
const tf = require('@tensorflow/tfjs-core');
require('@tensorflow/tfjs-backend-wasm');
const {models, training} = require('tfjs-linear-attention');

async function main() {
  await tf.setBackend('wasm');
  const ids = Int32Array.from({length: 200}, (_, i) => (i * i) % 7);
  const model = models.transformer({vocabSize: 7, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
  const {loss} = await training.train(model, ids, {steps: 2, batchSize: 2, length: 8, workers: 2, seed: 1});
  if (!(loss < 3)) throw new Error(`expected a loss of about ln 7; got ${loss}`);
}
main();
