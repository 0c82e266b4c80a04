/** Peak memory of one call by length: no timing. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {tf, tfla, useBackend} from '../lib/ours.mjs';
import {chunked} from '../peers/tfjs_chunked.mjs';
import {softmax} from '../peers/tfjs_softmax.mjs';

export const title = 'Peak memory of one causal forward and backward, wasm backend, MiB';
export const about =
  'B = 1, H = 8, r = d = 64. `tf.profile(f).peakBytes` above what the inputs hold, and for ours the scratch of the kernels, which is a fixed ' +
  "block (tfjs's linear memory grows by no more than that). Softmax is left out where its N x N matrices no longer fit.";

const LENGTHS = [128, 512, 2048, 8192];
const LONGEST_SOFTMAX = 2048;

export async function run({quick}) {
  await useBackend('wasm');
  const forms = {
    ours: (q, k, v) => tfla.linearAttention(q, k, v, {causal: true}),
    'stock tfjs, chunked': (q, k, v) => chunked(q, k, v, {C: 32, doubling: true}),
    'stock tfjs, softmax': softmax,
  };
  const rows = [];
  for (const N of quick ? LENGTHS.slice(0, 2) : LENGTHS) {
    const inputs = tensors(arrays(N, 64), N);
    const held = tf.memory().numBytes;
    const figures = {};
    for (const [name, form] of Object.entries(forms)) {
      if (form === softmax && N > LONGEST_SOFTMAX) continue;
      const call = () => tf.tidy(() => void tf.grads((...x) => tf.sum(form(...x)))(inputs));
      const {peakBytes} = await tf.profile(call);
      figures[name] = (peakBytes - held) / 2 ** 20;
    }
    rows.push({key: `N=${N}`, N, figures});
    tf.dispose(inputs);
  }
  return {rows, kernels: ['LinearAttention', 'LinearAttentionGrad'], backend: 'wasm', unit: 'MiB'};
}
