/** The cpu backend: the same kernels against the stock composition there. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {chunked} from '../peers/tfjs_chunked.mjs';

export const title = 'Causal forward, cpu backend, against stock tfjs ops';
export const about = 'B = 1, H = 8, r = d = 64; stock composition at its best chunk size.';

const LENGTHS = [128, 1024, 4096];

export async function run({quick, tune}) {
  await useBackend('cpu');
  const rows = [];
  let kernels;
  for (const N of quick ? LENGTHS.slice(0, 1) : LENGTHS) {
    const inputs = tensors(arrays(N, 64), N);
    const ours = () => tfla.linearAttention(...inputs, {causal: true});
    kernels ??= await kernelsOf(ours);
    const forms = N > 1024 ? [{C: 16, doubling: true}] : [8, 16, 32].map((C) => ({C, doubling: true}));
    const best = await tune(`N=${N}`, forms, (form) => read(chunked(...inputs, form)), 1);
    const contenders = [
      {name: 'ours', run: () => read(ours())},
      {name: 'stock tfjs, chunked', run: () => read(chunked(...inputs, best)), tuned: best},
    ];
    rows.push({key: `N=${N}`, N, r: 64, results: await compare(`cpu, N=${N}`, contenders, {quick})});
    tf.dispose(inputs);
  }
  return {rows, kernels, backend: 'cpu'};
}
