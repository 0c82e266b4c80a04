/** Against the C++ kernel of pytorch-fast-transformers, where Python has it. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, normal, outputAndGradients, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {fastTransformers} from '../peers/fast_transformers.mjs';

export const title = 'Causal linear attention against pytorch-fast-transformers (C++), one thread';
export const about =
  'B = 1, H = 8, r = d = 64, layout [B,N,H,.] on both sides; the whole operation with feature map and normaliser, from tensors to readable results. ' +
  'As pip builds it: without -march=native. Python measures its own calls.';

const LENGTHS = [128, 1024, 4096];

export async function run({quick}) {
  await useBackend('wasm');
  const peer = await fastTransformers();
  if (peer === null) {
    return {skipped: 'no Python with torch and pytorch-fast-transformers (BENCH_PYTHON names another)'};
  }
  const options = {causal: true, dataFormat: 'BNHD'};
  const ours = (...inputs) => tfla.linearAttention(...inputs, options);
  const rows = [];
  let kernels;
  for (const N of quick ? LENGTHS.slice(0, 1) : LENGTHS) {
    const values = arrays(N, 64);
    const inputs = tensors(values, N, 'BNHD');
    const gradient = normal(inputs[2].size, 9);
    const dy = tf.tensor(gradient, inputs[2].shape);
    kernels ??= await kernelsOf(() => ours(...inputs));
    for (const [key, run, given] of [
      [`N=${N}`, () => read(ours(...inputs)), []],
      [`N=${N} with gradients`, () => outputAndGradients(ours, inputs, dy), [gradient]],
    ]) {
      await peer.make(N, 64, [values.q, values.k, values.v, ...given]);
      const contenders = [
        {name: 'ours', run},
        {name: 'fast-transformers', run: peer.result, time: peer.time},
      ];
      rows.push({key, N, r: 64, results: await compare(`fast-transformers, ${key}`, contenders, {quick})});
    }
    tf.dispose([inputs, dy]);
  }
  peer.end();
  return {rows, kernels, backend: 'wasm', peers: [peer.name]};
}
