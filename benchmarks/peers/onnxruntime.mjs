/** onnxruntime, native and wasm, each on one thread. */
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';

const here = createRequire(import.meta.url);
const version = (name) =>
  JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version;

/**
 * @param kind 'node' or 'web'
 * @returns {name, session(bytes) -> {run(feeds, fetches) -> {name: {data, dims}}}, tensor(values, dims)}
 */
export async function onnxruntime(kind) {
  const ort = kind === 'node' ? here('onnxruntime-node') : await import('onnxruntime-web');
  if (kind === 'web') {
    ort.env.wasm.numThreads = 1;
    ort.env.logLevel = 'error';
  }
  const options = {
    executionProviders: [kind === 'node' ? 'cpu' : 'wasm'],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
  };
  return {
    name: `onnxruntime-${kind} ${version(`onnxruntime-${kind}`)}`,
    tensor: (values, dims) => new ort.Tensor('float32', values, dims),
    session: (bytes) => ort.InferenceSession.create(bytes, options),
  };
}
