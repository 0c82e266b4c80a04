/** Peak memory of one call by length: no timing. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {tf, tfla, useBackend} from '../lib/ours.mjs';
import {chunked} from '../peers/tfjs_chunked.mjs';
import {softmax} from '../peers/tfjs_softmax.mjs';

export const title = 'Peak memory of one causal forward and backward, wasm backend, MiB';
export const about =
  "B = 1, H = 8, r = d = 64. The most that is allocated in tfjs's linear memory at one time during the call, above what was there before: " +
  "tensors, and the scratch of our kernels (counted at the module's malloc; what XNNPACK allocates inside is not seen). " +
  'Softmax is left out where its N x N matrices no longer fit.';

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
    const figures = {};
    for (const [name, form] of Object.entries(forms)) {
      if (form === softmax && N > LONGEST_SOFTMAX) continue;
      const call = () => tf.tidy(() => void tf.grads((...x) => tf.sum(form(...x)))(inputs));
      call();
      figures[name] = peakOf(call) / 2 ** 20;
    }
    rows.push({key: `N=${N}`, N, figures});
    tf.dispose(inputs);
  }
  return {rows, kernels: ['LinearAttention', 'LinearAttentionGrad'], backend: 'wasm', unit: 'MiB'};
}

/** Bytes: the peak of what the module's malloc has given and free has not taken back. */
function peakOf(call) {
  const {wasm} = tf.backend();
  const {_malloc: malloc, _free: free} = wasm;
  const sizes = new Map();
  let live = 0;
  let peak = 0;
  wasm._malloc = (bytes) => {
    const at = malloc(bytes);
    sizes.set(at, bytes);
    live += bytes;
    peak = Math.max(peak, live);
    return at;
  };
  wasm._free = (at) => {
    live -= sizes.get(at) ?? 0;
    sizes.delete(at);
    free(at);
  };
  try {
    call();
  } finally {
    Object.assign(wasm, {_malloc: malloc, _free: free});
  }
  return peak;
}
