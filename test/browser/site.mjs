/** The files of a site that uses the built package: by script tags, as a module, and from a worker. */
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const tfjs = dirname(createRequire(import.meta.url).resolve('@tensorflow/tfjs/package.json'));

const script = (body) => ({type: 'text/javascript', body});
const page = (...scripts) => ({
  type: 'text/html',
  body: `<!doctype html><meta charset="utf-8">${scripts.join('')}`,
});

export async function files() {
  const {outputFiles} = await build({
    stdin: {
      contents: `
import * as tf from '@tensorflow/tfjs';
import * as tfla from './dist/index.mjs';
globalThis.tf = tf;
globalThis.tfla = tfla;`,
      resolveDir: root,
    },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'error',
  });
  return {
    '/script.html': page(
      '<script src="/tf.min.js"></script>',
      '<script src="/tfla.min.js"></script>',
      '<script src="/app.js"></script>',
    ),
    '/module.html': page(
      '<script src="/app.js"></script>',
      '<script type="module" src="/bundle.mjs"></script>',
    ),
    '/worker.html': page('<script src="/in_worker.js"></script>'),
    '/tf.min.js': script(readFileSync(join(tfjs, 'dist', 'tf.min.js'))),
    '/tfla.min.js': script(readFileSync(join(root, 'dist', 'tfjs-linear-attention.min.js'))),
    '/bundle.mjs': script(outputFiles[0].text),
    '/app.js': script(readFileSync(join(here, 'app.js'))),
    '/in_worker.js': script(`
globalThis.useModel = (backend) => new Promise((resolve, reject) => {
  const worker = new Worker('/worker.js');
  worker.onerror = (event) => reject(new Error(event.message));
  worker.onmessage = ({data}) => (data.error ? reject(new Error(data.error)) : resolve(data.result));
  worker.postMessage(backend);
});`),
    '/worker.js': script(`
importScripts('/tf.min.js', '/tfla.min.js', '/app.js');
onmessage = ({data}) => useModel(data).then(
  (result) => postMessage({result}),
  (error) => postMessage({error: String(error.stack)}),
);`),
  };
}
