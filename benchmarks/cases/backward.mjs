/** Causal forward and backward on wasm against the stock composition and its gradient by tfjs. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, normal, outputAndGradients, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {chunked} from '../peers/tfjs_chunked.mjs';

export const title = 'Causal forward and backward, wasm backend';
export const about =
  'Output and all three gradients for a given dy, read back; in the last two columns the same operations alone, which give their results to nobody: ' +
  'forward, and forward with the gradients. Backward over forward is of these two.';

const FORWARD = 'ours, forward alone';
const BOTH = 'ours, forward and backward alone';

const LENGTHS = {64: [128, 1024, 4096], 32: [1024]};

export async function run({quick, tune}) {
  await useBackend('wasm');
  const rows = [];
  let kernels;
  for (const [r, lengths] of Object.entries(LENGTHS)) {
    for (const N of quick ? lengths.slice(0, 1) : lengths) {
      const inputs = tensors(arrays(N, Number(r)), N);
      const dy = tf.tensor(normal(inputs[2].size, 9), inputs[2].shape);
      const ours = (q, k, v) => tfla.linearAttention(q, k, v, {causal: true});
      kernels ??= await kernelsOf(() => tf.grads((...x) => tf.sum(ours(...x)))(inputs));
      const forms = [16, 32].flatMap((C) => [false, true].map((doubling) => ({C, doubling})));
      const best = await tune(`r=${r} N=${N}`, N > 1024 ? [{C: 32, doubling: true}] : forms, (form) =>
        outputAndGradients((q, k, v) => chunked(q, k, v, form), inputs, dy),
      );
      const results = await compare(
        `backward, N=${N}`,
        [
          {name: 'ours', run: () => outputAndGradients(ours, inputs, dy)},
          {
            name: 'stock tfjs, chunked',
            run: () => outputAndGradients((q, k, v) => chunked(q, k, v, best), inputs, dy),
            tuned: best,
          },
        ],
        {quick},
      );
      // By themselves: the collector frees what was read back before in the middle of what comes after.
      const alone = await compare(
        `backward alone, N=${N}`,
        [
          {name: FORWARD, run: () => ours(...inputs).dispose(), expect: null},
          {name: BOTH, run: () => tf.dispose(tf.grads(ours)(inputs, dy)), expect: null},
        ],
        {quick},
      );
      rows.push({key: `r=${r} N=${N}`, N, r: Number(r), results: {...results, ...alone}});
      tf.dispose([inputs, dy]);
    }
  }
  return {rows, kernels, backend: 'wasm'};
}
