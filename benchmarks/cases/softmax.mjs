/** Where linear attention overtakes causal softmax attention, by runtime. */
import {arrays, HEADS, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {softmax as softmaxGraph} from '../peers/onnx_attention.mjs';
import {onnxruntime} from '../peers/onnxruntime.mjs';
import {softmax, softmaxByHead} from '../peers/tfjs_softmax.mjs';

export const title = 'Causal linear against causal softmax attention, forward, one thread';
export const about =
  'B = 1, H = 8, r = d = 64, layout [B,N,H,.] for ours and onnxruntime, [B,H,N,.] for stock tfjs. The results differ by design; ' +
  'the softmax peers are compared with each other. Left out: stock tfjs above 1024 (seconds a call), onnxruntime-web above 2048 (its operator fails with an integer overflow).';

const LENGTHS = [32, 64, 128, 256, 512, 1024, 2048, 4096];
const LONGEST_STOCK = 1024;
/** Above it the wasm build's operator fails with an integer overflow. */
const LONGEST_WEB = 2048;

export async function run({quick}) {
  await useBackend('wasm');
  const runtimes = {web: await onnxruntime('web'), node: await onnxruntime('node')};
  const graph = softmaxGraph(HEADS, 64, 64, true);
  const sessions = {web: await runtimes.web.session(graph), node: await runtimes.node.session(graph)};
  const rows = [];
  let kernels;
  for (const N of quick ? LENGTHS.slice(0, 4) : LENGTHS) {
    const values = arrays(N, 64);
    const inputs = tensors(values, N, 'BNHD');
    const byHead = inputs.map((x) => tf.transpose(x, [0, 2, 1, 3]));
    const ours = () => tfla.linearAttention(...inputs, {causal: true, dataFormat: 'BNHD'});
    kernels ??= await kernelsOf(ours);
    const contenders = [{name: 'ours (linear)', run: () => read(ours())}];
    let expect = null;
    for (const [kind, {tensor}] of Object.entries(runtimes)) {
      if (kind === 'web' && N > LONGEST_WEB) continue;
      const [query, key, value] = [values.q, values.k, values.v].map((x) => tensor(x, [1, N, HEADS * 64]));
      const run = async () => (await sessions[kind].run({query, key, value}, ['output'])).output.data;
      contenders.push({name: `onnxruntime-${kind}, softmax`, run, expect});
      expect ??= await run();
    }
    if (N <= LONGEST_STOCK) {
      const transposed = read(tf.transpose(tf.tensor(expect, [1, N, HEADS, 64]), [0, 2, 1, 3]));
      for (const [name, form] of Object.entries({softmax, 'softmax by head': softmaxByHead})) {
        contenders.push({name: `stock tfjs, ${name}`, run: () => read(form(...byHead)), expect: transposed});
      }
    }
    rows.push({key: `N=${N}`, N, r: 64, results: await compare(`softmax, N=${N}`, contenders, {quick})});
    tf.dispose([inputs, byHead]);
  }
  return {rows, kernels, backend: 'wasm', peers: Object.values(runtimes).map(({name}) => name)};
}
