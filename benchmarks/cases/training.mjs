/** Training steps of a character GPT: linear attention with our kernels and patches, against softmax GPTs elsewhere. */
import {assertAgree} from '../lib/agree.mjs';
import {ADAM, batches, GPT, ourGpt, ourModel, patchSwitch, weightsOf} from '../lib/gpt.mjs';
import {kernelsOf, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {jaxGpt} from '../peers/gpt_jax.mjs';
import {tfjsGpt} from '../peers/gpt_tfjs.mjs';

export const title = 'One training step of a character GPT, wasm, one thread';
export const about =
  'd = 128, 4 layers, 4 heads, vocabulary 65, 0.8 million parameters, learned positions, tanh gelu, tied head, Adam; loss read back. ' +
  'Ours has linear attention, with `patches.wasmTraining` and `patches.wasmMatMul` on; the peers have softmax attention, as has "ours, softmax". ' +
  'The three softmax models start from the same weights and must give the same losses for two steps; the linear one must give the same with stock products.';

const SHAPES = [
  {T: 128, B: 16, stock: true},
  {T: 256, B: 8, stock: false},
  {T: 512, B: 4, stock: true},
];
const LOSSES = {rms: 1e-4, max: 1e-4};

export async function run({quick}) {
  await useBackend('wasm');
  const rows = [];
  let kernels;
  for (const {T, B, stock} of quick ? [{T: 32, B: 2, stock: true}] : SHAPES) {
    const data = batches(B, T);
    const softmaxModel = ourModel('softmax', T);
    const weights = weightsOf(softmaxModel);
    const contender = (name, gpt, kind = 'tensor', around = {}) => {
      let i = 0;
      const run = () => {
        const {inputs, targets} = data[i++ % data.length];
        return gpt.step(inputs[kind], targets[kind]);
      };
      return {name, run, ...around, expect: null, dispose: () => gpt.dispose?.()};
    };
    const linear = ourGpt(ourModel('linear', T));
    const contenders = [
      contender('ours, linear', linear, 'tensor', patchSwitch()),
      contender('ours, softmax', ourGpt(softmaxModel), 'tensor', patchSwitch()),
      contender('jax-js, softmax', await jaxGpt(weights, {...GPT, B, T}, ADAM), 'values'),
    ];
    if (stock) contenders.push(contender('stock tfjs, softmax', tfjsGpt(weights, GPT, ADAM)));
    const {before, after} = patchSwitch();
    const plain = contender(
      'ours, linear, products of stock tfjs',
      ourGpt(ourModel('linear', T)),
      'tensor',
      patchSwitch(['wasmTraining']),
    );
    await checkLosses(`training T=${T}`, contenders[0], [plain]);
    await checkLosses(`training T=${T}`, contenders[1], contenders.slice(2));
    plain.dispose();
    const results = await compare(`training T=${T}`, contenders, {quick});
    for (const name of Object.keys(results)) results[name].tokens = B * T;
    rows.push({key: `T=${T} x ${B}`, N: T, results});
    before();
    kernels ??= await kernelsOf(() => void contenders[0].run());
    after();
    for (const {dispose} of contenders) dispose();
  }
  return {rows, kernels, backend: 'wasm', unit: 'tokens/s'};
}

/** Two steps each, on the same batches: the first loss tests forward, the second the gradients and the update. */
async function checkLosses(what, first, others) {
  const losses = async ({run, before, after}) => {
    before?.();
    try {
      return [await run(), await run()];
    } finally {
      after?.();
    }
  };
  const want = await losses(first);
  if (!want.every(Number.isFinite)) throw new Error(`${what}, ${first.name}: losses ${want}`);
  for (const other of others)
    assertAgree(`${what}, ${other.name}, two losses`, await losses(other), want, LOSSES);
}
