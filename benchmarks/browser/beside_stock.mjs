/** Parts of a benchmark's page: our kernels beside stock compositions on one GPU context. */
import * as tf from '@tensorflow/tfjs-core';
import {linearAttention, linearAttentionStep, zeroState} from '../../index.ts';
import {gpuCounts} from '../../test/browser/gpu_counts.ts';
import {assertAgree} from '../lib/agree.mjs';
import {chunked, whole} from '../peers/tfjs_chunked.mjs';

/** Output, or all gradients, waited for; `read` gives their values, else one number of each is read. */
async function results(f, inputs, dy, read) {
  const tensors = tf.tidy(() => {
    const all = dy === null ? [f(...inputs)] : tf.grads(f)(inputs, dy);
    return read ? all : all.map((x) => tf.slice(x, [0, 0, 0, 0], [1, 1, 1, 1]));
  });
  const arrays = [];
  for (const tensor of tensors) {
    arrays.push(await tensor.data());
    tensor.dispose();
  }
  return arrays;
}

export async function timed(f) {
  const from = performance.now();
  await f();
  return performance.now() - from;
}

/**
 * Interleaved timings of one shape, after both sides' results were compared. Timings end when a number of every result
 * has been read: reading all of them costs both sides the same.
 */
export async function compare({N, H, r, causal, backward, rounds}) {
  // On the GPU, packed, before anything is timed.
  const normal = (seed) => tf.tidy(() => tf.neg(tf.randomNormal([1, H, N, r], 0, 1, 'float32', seed)));
  const inputs = [1, 2, 3].map(normal);
  const dy = backward ? normal(4) : null;
  const ours = (q, k, v) => linearAttention(q, k, v, {causal});
  const stockOf = (C) => (causal ? (q, k, v) => chunked(q, k, v, {C}) : whole);
  // The stock side gets its best chunk length.
  let stockChunk = 0;
  let best = Number.POSITIVE_INFINITY;
  for (const C of causal ? [32, 64, 128].filter((length) => N % length === 0) : [0]) {
    await results(stockOf(C), inputs, dy, false);
    const ms = await timed(() => results(stockOf(C), inputs, dy, false));
    if (ms < best) {
      best = ms;
      stockChunk = C;
    }
  }
  const stock = stockOf(stockChunk);
  const [mine, theirs] = [await results(ours, inputs, dy, true), await results(stock, inputs, dy, true)];
  mine.forEach(
    (x, i) =>
      void assertAgree(`${tf.getBackend()}, N = ${N}, result ${i}`, x, theirs[i], {rms: 3e-5, max: 3e-4}),
  );
  const times = {ours: [], stock: []};
  for (let i = 0; i < rounds; i++) {
    times.ours.push(await timed(() => results(ours, inputs, dy, false)));
    times.stock.push(await timed(() => results(stock, inputs, dy, false)));
  }
  const drawsOf = (f) => {
    const before = gpuCounts.draws;
    tf.tidy(() => void (dy === null ? f(...inputs) : tf.valueAndGrads(f)(inputs, dy)));
    return gpuCounts.draws - before;
  };
  const draws = {ours: drawsOf(ours), stock: drawsOf(stock)};
  tf.dispose([...inputs, ...(dy ? [dy] : [])]);
  return {...times, stockChunk, draws};
}

/** Decodes with our step, or with stock softmax over keys and values that grow by concatenation. */
export async function decode(kind, tokens, H, r) {
  const token = () => tf.randomNormal([1, H, r]);
  let state = zeroState({batchSize: 1, numHeads: H, keyDim: r, valueDim: r});
  let cache = [];
  const ms = [];
  let compiled = 0;
  for (let t = 0; t < tokens; t++) {
    const [q, k, v] = [token(), token(), token()];
    if (t === 1) compiled = gpuCounts.compiles;
    const from = performance.now();
    let output;
    if (kind === 'ours') {
      const next = linearAttentionStep(q, k, v, state);
      tf.dispose([state.s, state.z]);
      state = next.state;
      output = next.output;
    } else {
      const next = tf.tidy(() => {
        const row = (x) => tf.reshape(x, [H, 1, r]);
        const grown = [k, v].map((x, i) => (t === 0 ? row(x) : tf.concat([cache[i], row(x)], 1)));
        const scores = tf.div(tf.matMul(row(q), grown[0], false, true), Math.sqrt(r));
        return [tf.matMul(tf.softmax(scores), grown[1]), ...grown];
      });
      tf.dispose(cache);
      output = next[0];
      cache = next.slice(1);
    }
    await output.data();
    ms.push(performance.now() - from);
    tf.dispose([q, k, v, output]);
  }
  const compiles = gpuCounts.compiles - compiled;
  tf.dispose([state.s, state.z, ...cache]);
  return {ms, compiles};
}
