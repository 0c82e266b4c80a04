/** The files of a site as it is deployed: with a content security policy, a worker that writes, and a model by URL. */
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const require = createRequire(import.meta.url);
const scriptOf = (name, file) =>
  readFileSync(join(dirname(require.resolve(`@tensorflow/${name}/package.json`)), 'dist', file));

/** All that the package needs beyond the page's own files; `wasm` is what its kernels need. */
const policy = (wasm) => ({
  'Content-Security-Policy': `default-src 'none'; connect-src 'self'; worker-src 'self'; script-src 'self'${wasm}`,
});
const SCRIPTS = [
  '/capture.js',
  '/tf.min.js',
  '/tf-backend-wasm.min.js',
  '/tfla.min.js',
  '/app.js',
  '/deployed.js',
];
const page = (headers) => ({
  type: 'text/html',
  headers,
  body: `<!doctype html><meta charset="utf-8">${SCRIPTS.map((src) => `<script src="${src}"></script>`).join('')}`,
});
const script = (body) => ({type: 'text/javascript', body});

/** The files that training.saveModel writes. */
async function modelFiles() {
  const tf = require('@tensorflow/tfjs-core');
  require('@tensorflow/tfjs-backend-cpu');
  const {models, training} = require(join(root, 'dist', 'index.cjs'));
  tf.enableProdMode(); // no greetings
  await tf.setBackend('cpu');
  const folder = mkdtempSync(join(tmpdir(), 'site-'));
  try {
    const model = models.transformer({vocabSize: 9, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
    await training.saveModel(model, folder, {quantize: 'float16'});
    return ['model.json', 'weights.bin'].map((name) => readFileSync(join(folder, name)));
  } finally {
    rmSync(folder, {recursive: true});
  }
}

export async function files() {
  const [json, weights] = await modelFiles();
  return {
    '/open.html': page({}),
    '/policy.html': page(policy(" 'wasm-unsafe-eval'")),
    '/no_wasm.html': page(policy('')),
    '/capture.js': script(`
globalThis.seen = {warnings: [], violations: []};
const warn = console.warn;
console.warn = (...texts) => { seen.warnings.push(texts.join(' ')); warn(...texts); };
document.addEventListener('securitypolicyviolation', (event) => seen.violations.push(event.violatedDirective));
globalThis.whatWasSeen = async () => { await new Promise((resolve) => setTimeout(resolve, 200)); return seen; };`),
    '/deployed.js': script(`
// tfjs's own fit needs what its wasm backend lacks.
globalThis.trainHere = (backend) => {
  if (backend === 'wasm') tfla.patches.wasmTraining();
  return useModel(backend);
};
// Text of a worker, and of this page, from one model by URL.
globalThis.writeInWorker = async () => {
  const options = {maxNewTokens: 8, seed: 1};
  const worker = new Worker('/writer.js');
  const written = [];
  for await (const id of tfla.generation.remote(worker).generate([1, 2], options)) written.push(id);
  worker.terminate();
  await tf.setBackend('cpu');
  const model = await tfla.training.fetchModel('/model/model.json', {cache: false});
  const here = [];
  for await (const id of tfla.generation.generate(model, [1, 2], options)) here.push(id);
  return {written, here};
};
globalThis.brokenWorker = async () => {
  try {
    for await (const id of tfla.generation.remote(new Worker('/no_such_worker.js')).generate([1])) return id;
  } catch (error) {
    return error.message;
  }
};
// Which files are asked for at visits one after the other, the last one without a network.
globalThis.visits = async () => {
  await tf.setBackend('cpu');
  await caches.delete('models');
  const asked = [];
  let offline = false;
  const visit = async (options) => {
    const names = [];
    const fetch = (url, init) => {
      names.push(new URL(url).pathname);
      return offline ? Promise.reject(new TypeError('no network')) : globalThis.fetch(url, init);
    };
    const model = await tfla.training.fetchModel('/model/model.json', {cache: 'models', fetch, ...options});
    asked.push(names.length);
    const sum = tf.tidy(() => tf.sum(model.predict(tf.tensor2d([[1, 2, 3]], [1, 3], 'int32'))).dataSync()[0]);
    model.dispose();
    return sum;
  };
  const sums = [await visit(), await visit(), await visit({version: '1'}), await visit({version: '1'})];
  offline = true;
  sums.push(await visit(), await visit({version: '1'}));
  return {asked, sums};
};
// tfjs's own IndexedDB store keeps our layers too.
globalThis.throughIndexedDB = async () => {
  await tf.setBackend('cpu');
  const model = await tfla.training.fetchModel('/model/model.json', {cache: false});
  await model.save('indexeddb://kept');
  const same = await tf.loadLayersModel('indexeddb://kept');
  const ids = tf.tensor2d([[1, 2, 3]], [1, 3], 'int32');
  return (await tf.max(tf.abs(tf.sub(model.predict(ids), same.predict(ids)))).data())[0];
};`),
    '/writer.js': script(`
importScripts('/tf.min.js', '/tfla.min.js');
async function load() {
  await tf.setBackend('cpu');
  return tfla.training.fetchModel('/model/model.json', {cache: false});
}
tfla.generation.serve(load());`),
    // tfjs's file for old browsers, tf.min.js, needs 'unsafe-eval' besides.
    '/tf.min.js': script(scriptOf('tfjs', 'tf.es2017.min.js')),
    '/tf-backend-wasm.min.js': script(scriptOf('tfjs-backend-wasm', 'tf-backend-wasm.es2017.min.js')),
    '/tfla.min.js': script(readFileSync(join(root, 'dist', 'tfjs-linear-attention.min.js'))),
    '/app.js': script(readFileSync(join(here, 'app.js'))),
    '/model/model.json': {type: 'application/json', body: json},
    '/model/weights.bin': {type: 'application/octet-stream', body: weights},
  };
}
