/** The page of wasm.mjs: our SIMD kernels beside onnxruntime-web's on one thread, and beside stock compositions. */

import {setWasmPaths} from '@tensorflow/tfjs-backend-wasm';
import * as tf from '@tensorflow/tfjs-core';
import {linearAttention, linearAttentionStepInPlace, patches, zeroState} from '../../index.ts';
import {compare as compareSides} from '../lib/timing.mjs';
import {linearRaw} from '../peers/onnx_attention.mjs';
import {compare} from './beside_stock.mjs';

let ort;

/** @param peer whether onnxruntime-web's files are served */
async function start(peer) {
  setWasmPaths('/');
  await tf.setBackend('wasm');
  await tf.ready();
  if (peer) {
    // Not bundled: it loads its own files at run time.
    const url = '/ort.wasm.min.mjs';
    ort = await import(url);
    ort.env.wasm.wasmPaths = '/';
    ort.env.wasm.numThreads = 1;
    ort.env.logLevel = 'error';
  }
  return {browser: navigator.userAgent, version: tf.version_core};
}

const sessionOf = (bytes) => ort.InferenceSession.create(bytes, {executionProviders: ['wasm']});
const normal = (n, seed) => tf.tidy(() => tf.randomNormal([n], 0, 1, 'float32', seed).dataSync().slice());
const phi = (x) => x.map((value) => (value > 0 ? value + 1 : Math.exp(value)));

/** The values of a tensor, which is disposed. */
function read(tensor) {
  const values = tensor.dataSync();
  tensor.dispose();
  return values;
}

/** Timings alone: {name: [ms]}. */
const timingsOf = (results) =>
  Object.fromEntries(Object.entries(results).map(([name, {timings}]) => [name, timings]));

/** Causal forward, [1,N,H,.]: ours with map and normaliser, theirs the numerator from mapped queries and keys. */
async function besideOnnxruntime({N, H, r, calls}) {
  const [q, k, v] = [1, 2, 3].map((seed) => normal(N * H * r, seed));
  const session = await sessionOf(linearRaw(H, r, r));
  const packed = (values) => new ort.Tensor('float32', values, [1, N, H * r]);
  const feeds = {query: packed(phi(q)), key: packed(phi(k)), value: packed(v)};
  const inputs = [q, k, v].map((values) => tf.tensor4d(values, [1, N, H, r]));
  const options = {causal: true, dataFormat: 'BNHD'};
  const numerator = read(linearAttention(...inputs, {...options, normalize: false}));
  const results = await compareSides(`onnxruntime-web, N=${N}`, [
    {name: 'ours', run: () => read(linearAttention(...inputs, options)), calls},
    {
      name: 'theirs',
      run: async () => (await session.run(feeds, ['output'])).output.data,
      calls,
      expect: numerator,
    },
  ]);
  tf.dispose(inputs);
  await session.release();
  return timingsOf(results);
}

/** Decoding steps, each side's state carried from step to step; ours moves on in place. */
async function stepBesideOnnxruntime({H, r, calls}) {
  const [q, k, v] = [1, 2, 3].map((seed) => normal(H * r, seed));
  const inputs = [q, k, v].map((values) => tf.tensor3d(values, [1, H, r]));
  const stepper = (options) => {
    const state = zeroState({batchSize: 1, numHeads: H, keyDim: r, valueDim: r});
    return () => read(linearAttentionStepInPlace(...inputs, state, options));
  };
  const session = await sessionOf(linearRaw(H, r, r, true));
  const row = (values) => new ort.Tensor('float32', values, [1, 1, H * r]);
  const feeds = {query: row(phi(q)), key: row(phi(k)), value: row(v)};
  let past = new ort.Tensor('float32', new Float32Array(H * r * r), [1, H, r, r]);
  const theirs = async () => {
    const {output, present_state: next} = await session.run({...feeds, past_state: past}, [
      'output',
      'present_state',
    ]);
    past = next;
    return output.data;
  };
  // Two steps from an empty state: the second one has read the state that the first one wrote.
  const raw = stepper({normalize: false});
  raw();
  const expect = raw();
  await theirs();
  const results = await compareSides('onnxruntime-web, step', [
    {name: 'ours', run: stepper({}), calls},
    {name: 'theirs', run: theirs, calls, expect},
  ]);
  await session.release();
  return timingsOf(results);
}

/** Products of size x size matrices: ours in every form beside tfjs's own untransposed one (XNNPACK). */
async function products({size}) {
  const [a, b] = [1, 2].map((seed) => tf.tensor2d(normal(size * size, seed), [size, size]));
  const contenders = [{name: 'XNNPACK', run: () => read(tf.matMul(a, b))}];
  for (const [form, tA, tB] of [
    ['NN', false, false],
    ['NT', false, true],
    ['TN', true, false],
  ]) {
    const plain = () => tf.matMul(tA ? tf.transpose(a) : a, tB ? tf.transpose(b) : b);
    let undo;
    contenders.push({
      name: form,
      run: () => read(tf.matMul(a, b, tA, tB)),
      expect: read(tf.tidy(plain)),
      before: () => {
        undo = patches.wasmMatMul();
      },
      after: () => undo(),
    });
  }
  const results = await compareSides('products', contenders);
  tf.dispose([a, b]);
  return timingsOf(results);
}

Object.assign(globalThis, {start, compare, besideOnnxruntime, stepBesideOnnxruntime, products});
