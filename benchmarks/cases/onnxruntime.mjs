/** Causal forward against onnxruntime's LinearAttention, native and wasm, with and without the normaliser. */
import {arrays, HEADS, mapped, tensors, withOnes} from '../lib/attention_inputs.mjs';
import {kernelsOf, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {linearNormalised, linearRaw} from '../peers/onnx_attention.mjs';
import {onnxruntime} from '../peers/onnxruntime.mjs';

export const title = "Causal forward against onnxruntime's com.microsoft.LinearAttention, one thread";
export const about =
  'Layout [B,N,H,.] on all sides. Ours maps queries and keys (elu + 1) and divides by the normaliser; onnxruntime gets mapped queries and keys. ' +
  '"raw" has no normaliser; "normalised" gets it as a column of ones in the values (widened to the faster of d + 1 and d + 8) and divides. ' +
  'Ours has its inputs in tfjs tensors, onnxruntime in the typed arrays that its API takes (the wasm build copies them in); all give a typed array.';

const LENGTHS = {64: [128, 512, 1024, 4096, 16384], 32: [128, 1024, 4096]};

export async function run({quick, tune}) {
  await useBackend('wasm');
  const runtimes = {web: await onnxruntime('web'), node: await onnxruntime('node')};
  const rows = [];
  let kernels;
  for (const [size, lengths] of Object.entries(LENGTHS)) {
    const r = Number(size);
    for (const N of quick ? lengths.slice(0, 2) : lengths) {
      const values = arrays(N, r);
      const inputs = tensors(values, N, 'BNHD');
      const options = {causal: true, dataFormat: 'BNHD'};
      const ours = () => tfla.linearAttention(...inputs, options);
      kernels ??= await kernelsOf(ours);
      const numerator = read(tfla.linearAttention(...inputs, {...options, normalize: false}));
      const contenders = [{name: 'ours', run: () => read(ours())}];
      for (const [kind, runtime] of Object.entries(runtimes)) {
        contenders.push({
          name: `onnxruntime-${kind}, raw`,
          run: await raw(runtime, values, N, r),
          expect: numerator,
        });
        const width = await tune(`${kind} r=${r} N=${N}`, [r + 1, r + 8], (width) =>
          normalised(runtime, values, N, r, width).then((once) => once()),
        );
        const run = await normalised(runtime, values, N, r, width);
        contenders.push({name: `onnxruntime-${kind}, normalised`, run, tuned: {width}});
      }
      rows.push({
        key: `r=${r} N=${N}`,
        N,
        r,
        results: await compare(`onnxruntime, N=${N}`, contenders, {quick}),
      });
      tf.dispose(inputs);
    }
  }
  return {rows, kernels, backend: 'wasm', peers: Object.values(runtimes).map(({name}) => name)};
}

async function raw({session, tensor}, values, N, r) {
  const {q, k, v} = mapped(values);
  const made = await session(linearRaw(HEADS, r, r));
  const feeds = {
    query: tensor(q, [1, N, HEADS * r]),
    key: tensor(k, [1, N, HEADS * r]),
    value: tensor(v, [1, N, HEADS * r]),
  };
  return async () => (await made.run(feeds, ['output'])).output.data;
}

const sessions = new Map();
async function normalised({name, session, tensor}, values, N, r, width) {
  const key = `${name} ${r} ${width}`;
  if (!sessions.has(key)) sessions.set(key, await session(linearNormalised(HEADS, r, r, width)));
  const {q, k, v} = mapped(values);
  const wide = withOnes(v, N, width);
  const feeds = {
    query: tensor(q, [1, N, HEADS * r]),
    key: tensor(k, [1, N, HEADS * r]),
    value: tensor(wide, [1, N, HEADS * width]),
  };
  return async () => (await sessions.get(key).run(feeds, ['output'])).output.data;
}
