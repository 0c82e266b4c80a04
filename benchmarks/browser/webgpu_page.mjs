/** The page of webgpu.mjs: our kernels beside stock compositions on one WebGPU device, and beside onnxruntime-web's. */
import '../../test/browser/gpu_counts.ts';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-webgpu';
import {linearAttention, linearAttentionStep, zeroState} from '../../index.ts';
import {forceSegmentLength} from '../../src/linear_attention/webgpu/plan.ts';
import {assertAgree} from '../lib/agree.mjs';
import {linearNormalised, linearRaw} from '../peers/onnx_attention.mjs';
import {compare, decode, timed} from './beside_stock.mjs';

async function start() {
  await tf.setBackend('webgpu');
  await tf.ready();
  const {vendor, architecture, description} = (await navigator.gpu.requestAdapter()).info;
  return {renderer: [vendor, architecture, description].filter(Boolean).join(' '), version: tf.version_core};
}

let ort;

async function loadOnnxruntime() {
  // Not bundled: it loads its own files at run time.
  const url = '/ort.webgpu.min.mjs';
  ort = await import(url);
  ort.env.wasm.wasmPaths = '/';
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = 'error';
  return ort.env.versions?.web ?? '';
}

/** A session whose results stay on the GPU. */
const sessionOf = (bytes) =>
  ort.InferenceSession.create(bytes, {
    executionProviders: ['webgpu'],
    preferredOutputLocation: 'gpu-buffer',
    logSeverityLevel: 3,
  });

/** A float tensor in a buffer of onnxruntime's device. */
function onGpu(values, dims) {
  const {device} = ort.env.webgpu;
  const size = Math.ceil(values.byteLength / 16) * 16;
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({size, usage, mappedAtCreation: true});
  new Float32Array(buffer.getMappedRange()).set(values);
  buffer.unmap();
  return ort.Tensor.fromGpuBuffer(buffer, {dataType: 'float32', dims, dispose: () => buffer.destroy()});
}

const normal = (n, seed) => tf.tidy(() => tf.randomNormal([n], 0, 1, 'float32', seed).dataSync());
const phi = (x) => x.map((value) => (value > 0 ? value + 1 : Math.exp(value)));

/** v with the column of ones that makes the normaliser, and zeros up to a whole vector of 4. */
function withOnes(v, rows, d, width) {
  const wide = new Float32Array(rows * width);
  for (let i = 0; i < rows; i++) {
    wide.set(v.subarray(i * d, (i + 1) * d), i * width);
    wide[i * width + d] = 1;
  }
  return wide;
}

async function arraysOf(N, H, r) {
  await ort.env.webgpu?.device;
  const [q, k, v] = [1, 2, 3].map((seed) => normal(N * H * r, seed));
  const width = r + 4;
  return {q, k, v, phiQ: phi(q), phiK: phi(k), wide: withOnes(v, N * H, r, width), width};
}

/**
 * Causal forward at one length: ours with map and normaliser from q, k, v on the GPU in [1,N,H,.], and onnxruntime's from
 * mapped q and k (and v with its column of ones) on its device; each timing ends when the output has been read.
 */
async function besideOnnxruntime({N, H, r, rounds}) {
  const raw = await sessionOf(linearRaw(H, r, r));
  const x = await arraysOf(N, H, r);
  const normalised = await sessionOf(linearNormalised(H, r, r, x.width));
  const packed = (values, width) => onGpu(values, [1, N, H * width]);
  const query = packed(x.phiQ, r);
  const key = packed(x.phiK, r);
  const feeds = {
    raw: {query, key, value: packed(x.v, r)},
    normalised: {query, key, value: packed(x.wide, x.width)},
  };
  const peer = async (session, given) => {
    const {output} = await session.run(given, ['output']);
    const data = await output.getData();
    output.dispose();
    return data;
  };
  const inputs = ['q', 'k', 'v'].map((name) => tf.tensor4d(x[name], [1, N, H, r]));
  const ours = async (options) => {
    const output = linearAttention(...inputs, {causal: true, dataFormat: 'BNHD', ...options});
    const data = await output.data();
    output.dispose();
    return data;
  };
  const sides = {
    ours: () => ours({}),
    oursInSegments: async () => {
      forceSegmentLength(128);
      try {
        return await ours({});
      } finally {
        forceSegmentLength(null);
      }
    },
    raw: () => peer(raw, feeds.raw),
    normalised: () => peer(normalised, feeds.normalised),
  };
  const tolerance = {rms: 3e-5, max: 3e-4};
  const want = await sides.ours();
  assertAgree(`onnxruntime with normaliser, N = ${N}`, await sides.normalised(), want, tolerance);
  assertAgree(`ours in segments, N = ${N}`, await sides.oursInSegments(), want, tolerance);
  const numerator = await ours({normalize: false});
  assertAgree(`onnxruntime's numerator, N = ${N}`, await sides.raw(), numerator, tolerance);
  const times = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  for (let i = 0; i < rounds; i++) {
    for (const [name, run] of Object.entries(sides)) {
      times[name].push(await timed(run));
    }
  }
  tf.dispose(inputs);
  for (const tensor of new Set([...Object.values(feeds.raw), ...Object.values(feeds.normalised)])) {
    tensor.dispose();
  }
  await Promise.all([raw.release(), normalised.release()]);
  return times;
}

/** Decoding steps of both sides in turns, the state kept on the GPU, each ended by reading the output. */
async function stepsBesideOnnxruntime({H, r, tokens}) {
  const session = await sessionOf(linearRaw(H, r, r, true));
  const x = await arraysOf(tokens, H, r);
  const at = (values, t) => values.slice(t * H * r, (t + 1) * H * r);
  let past = onGpu(new Float32Array(H * r * r), [1, H, r, r]);
  let state = zeroState({batchSize: 1, numHeads: H, keyDim: r, valueDim: r});
  const times = {ours: [], raw: []};
  for (let t = 0; t < tokens; t++) {
    const inputs = [x.q, x.k, x.v].map((values) => tf.tensor3d(at(values, t), [1, H, r]));
    times.ours.push(
      await timed(async () => {
        const next = linearAttentionStep(...inputs, state);
        tf.dispose([state.s, state.z]);
        state = next.state;
        await next.output.data();
        next.output.dispose();
      }),
    );
    tf.dispose(inputs);
    const packed = (values) => new ort.Tensor('float32', at(values, t), [1, 1, H * r]);
    const feeds = {query: packed(x.phiQ), key: packed(x.phiK), value: packed(x.v), past_state: past};
    times.raw.push(
      await timed(async () => {
        const {output, present_state: present} = await session.run(feeds);
        await output.getData();
        output.dispose();
        past.dispose();
        past = present;
      }),
    );
  }
  const same = await past.getData();
  assertAgree('the states after decoding', same, await state.s.data(), {rms: 3e-5, max: 3e-4});
  tf.dispose([state.s, state.z]);
  past.dispose();
  await session.release();
  return times;
}

Object.assign(globalThis, {
  start,
  compare,
  decode,
  loadOnnxruntime,
  besideOnnxruntime,
  stepsBesideOnnxruntime,
});
