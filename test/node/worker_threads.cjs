/**
 * A program: linear attention on tfjs-node in the main thread and in worker threads, the same numbers everywhere. It ends
 * by itself.
 *
 *     worker_threads.cjs together | workers-first
 */
const {isMainThread, parentPort, Worker} = require('node:worker_threads');

/** Sums of output and gradients, 20 times. Long enough for the operations' own threads. */
function runs() {
  const tf = require('@tensorflow/tfjs-node');
  const {linearAttention} = require('../..');
  return Array.from({length: 20}, () =>
    tf.tidy(() => {
      const [q, k, v] = [1, 2, 3].map((seed) => tf.randomNormal([1, 4, 512, 32], 0, 1, 'float32', seed));
      const loss = (...x) => tf.sum(linearAttention(...x, {causal: true}));
      const {value, grads} = tf.valueAndGrads(loss)([q, k, v]);
      return [value, ...grads].map((x) => tf.sum(tf.abs(x)).dataSync()[0]).join();
    }),
  );
}

/** What a worker's runs gave, when it has ended and taken its TensorFlow context with it. */
const inWorker = () =>
  new Promise((resolve, reject) => {
    const worker = new Worker(__filename);
    let results;
    worker.on('message', (message) => {
      results = message;
    });
    worker.on('error', reject);
    worker.on('exit', () => resolve(results));
  });

async function main() {
  const theirs = Promise.all([inWorker(), inWorker()]);
  if (process.argv[2] === 'workers-first') await theirs;
  const own = runs();
  const all = [...own, ...(await theirs).flat()];
  console.log(`${all.length} runs, ${new Set(all).size} result`);
}

if (isMainThread) {
  main();
} else {
  parentPort.postMessage(runs());
}
