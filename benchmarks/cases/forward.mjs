/** Causal forward on wasm against the stock composition. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {chunked, chunkedByHead} from '../peers/tfjs_chunked.mjs';

export const title = 'Causal forward, wasm backend, against stock tfjs ops';
export const about =
  'B = 1, H = 8, r = d. The stock composition is `peers/tfjs_chunked.mjs`, at its best chunk size C and its better sum over chunks; ' +
  '"by head" is the same with plain products only, one head and chunk at a time.';

const LENGTHS = {64: [128, 512, 1024, 4096, 16384], 32: [128, 1024, 4096]};

export async function run({quick, tune}) {
  await useBackend('wasm');
  const rows = [];
  let kernels;
  for (const [r, lengths] of Object.entries(LENGTHS)) {
    for (const N of quick ? lengths.slice(0, 2) : lengths) {
      const inputs = tensors(arrays(N, Number(r)), N);
      const ours = () => tfla.linearAttention(...inputs, {causal: true});
      kernels ??= await kernelsOf(ours);
      const batched = await tune(`batched r=${r} N=${N}`, batchedForms(N), (form) =>
        read(chunked(...inputs, form)),
      );
      const byHead = await tune(`by head r=${r} N=${N}`, byHeadForms(N), (form) =>
        read(chunkedByHead(...inputs, form)),
      );
      const contenders = [
        {name: 'ours', run: () => read(ours())},
        {name: 'stock tfjs, chunked', run: () => read(chunked(...inputs, batched)), tuned: batched},
        {
          name: 'stock tfjs, chunked by head',
          run: () => read(chunkedByHead(...inputs, byHead)),
          tuned: byHead,
        },
      ];
      rows.push({
        key: `r=${r} N=${N}`,
        N,
        r: Number(r),
        results: await compare(`forward, N=${N}`, contenders, {quick}),
      });
      tf.dispose(inputs);
    }
  }
  return {rows, kernels, backend: 'wasm'};
}

/** Long sequences have many chunks, where adding shifted copies wins over the triangle. */
const batchedForms = (N) =>
  N > 4096
    ? [{C: 32, doubling: true}]
    : [16, 32, 64]
        .flatMap((C) => [false, true].map((doubling) => ({C, doubling})))
        .filter(({C}) => N % C === 0);
const byHeadForms = (N) => (N > 4096 ? [{C: 256}] : [64, 128, 256].map((C) => ({C: Math.min(C, N)})));
