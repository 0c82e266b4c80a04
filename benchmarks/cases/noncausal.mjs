/** Not causal, wasm and cpu. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {whole} from '../peers/tfjs_chunked.mjs';

export const title = 'Forward, not causal, against stock tfjs ops';
export const about = 'B = 1, H = 8, r = d = 64; the stock form is two products over the whole length.';

const LENGTHS = {wasm: [128, 1024, 4096], cpu: [128, 1024]};

export async function run({quick}) {
  const rows = [];
  let kernels;
  for (const [backend, lengths] of Object.entries(LENGTHS)) {
    await useBackend(backend);
    for (const N of quick ? lengths.slice(0, 1) : lengths) {
      const inputs = tensors(arrays(N, 64), N);
      const ours = () => tfla.linearAttention(...inputs);
      kernels ??= await kernelsOf(ours);
      const contenders = [
        {name: 'ours', run: () => read(ours())},
        {name: 'stock tfjs', run: () => read(whole(...inputs))},
      ];
      const results = await compare(`not causal, ${backend}, N=${N}`, contenders, {quick});
      rows.push({key: `${backend} N=${N}`, N, r: 64, results});
      tf.dispose(inputs);
    }
  }
  return {rows, kernels, backend: 'wasm and cpu'};
}
