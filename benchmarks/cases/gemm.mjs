/** Matrix products: our patch, stock tfjs (XNNPACK for one plain product), and the attention kernel's rate beside them. */
import {arrays, HEADS, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, normal, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';

export const title =
  'Matrix products on wasm: `patches.wasmMatMul` against tfjs, and the rate of the attention kernel';
export const about =
  'Rates are GFLOP/s: 2 m n k of a product, 4 B H N r d of causal linear attention (its feature map and normaliser are not counted). ' +
  "The yardstick is tfjs's own untransposed product of 1024 x 1024 matrices (XNNPACK) in the same rounds. " +
  'What is timed is the operation, on all sides: results are compared before, and then stay in the backend, where an operation on wasm is done when its call returns.';

const SIZE = 1024;
const YARDSTICK = 'tfjs 1024 NN (XNNPACK)';
const FORMS = {NN: [false, false], NT: [false, true], TN: [true, false], TT: [true, true]};

export async function run({quick}) {
  await useBackend('wasm');
  const rows = [...(await largeRows(quick)), ...(await smallRows(quick))];
  const undo = tfla.patches.wasmMatMul();
  const kernels = await kernelsOf(() => tf.tidy(() => tf.matMul(tf.ones([8, 8]), tf.ones([8, 8]), true)));
  undo();
  return {rows, kernels, backend: 'wasm', unit: 'GFLOP/s'};
}

const matrices = (size) => [1, 2].map((seed) => tf.tensor(normal(size * size, seed), [size, size]));

/** What is compared, with its read-back, and what is timed, without. */
const operation = (make) => ({run: () => read(make()), work: () => make().dispose()});

/** The patch on for a contender's turn only. */
function patched() {
  let undo;
  return {
    before: () => {
      undo = tfla.patches.wasmMatMul();
    },
    after: () => undo(),
  };
}

/** Products of 1024 and the attention kernel, all in the same rounds as the yardstick. */
async function largeRows(quick) {
  const size = quick ? 256 : SIZE;
  const [a, b] = matrices(size);
  const flops = 2 * size ** 3;
  const contenders = [{name: YARDSTICK, ...operation(() => tf.matMul(a, b)), flops}];
  const keys = {};
  for (const [form, [tA, tB]] of Object.entries(FORMS)) {
    const product = operation(() => tf.matMul(a, b, tA, tB));
    const expect = read(stockProduct(a, b, tA, tB));
    contenders.push({name: `ours ${form}`, ...product, expect, ...patched(), flops});
    keys[`${size} ${form}`] = {ours: `ours ${form}`, [YARDSTICK]: YARDSTICK};
    if (form !== 'NN') {
      contenders.push({name: `tfjs ${form}`, ...product, expect, flops});
      keys[`${size} ${form}`]['tfjs, the same product'] = `tfjs ${form}`;
    }
  }
  for (const N of quick ? [128] : [1024, 4096]) {
    const inputs = tensors(arrays(N, 64), N);
    const attention = operation(() => tfla.linearAttention(...inputs, {causal: true}));
    contenders.push({name: `attention ${N}`, ...attention, expect: null, flops: 4 * HEADS * N * 64 * 64});
    keys[`attention N=${N}`] = {ours: `attention ${N}`, [YARDSTICK]: YARDSTICK};
  }
  const results = await rated('matMul 1024', contenders, quick);
  const named = (names) =>
    Object.fromEntries(Object.entries(names).map(([name, from]) => [name, results[from]]));
  return Object.entries(keys).map(([key, names]) => ({key, results: named(names)}));
}

/** A plain product of explicitly transposed matrices. */
const stockProduct = (a, b, tA, tB) =>
  tf.tidy(() => tf.matMul(tA ? tf.transpose(a) : a, tB ? tf.transpose(b) : b));

/** What the gradients of a Dense layer and batched attention run: stock takes its scalar path. */
async function smallRows(quick) {
  const [x, y] = [
    [64, 128, 32],
    [64, 32, 128],
  ].map((shape, i) => tf.tensor(normal(64 * 128 * 32, i), shape));
  const [a, b] = matrices(256);
  const rows = [];
  for (const [key, product, flops] of [
    ['64 x [128,32] x [32,128]', operation(() => tf.matMul(x, y)), 2 * 64 * 128 * 128 * 32],
    ['256 TN', operation(() => tf.matMul(a, b, true, false)), 2 * 256 ** 3],
  ]) {
    const pair = [
      {name: 'ours', ...product, ...patched(), flops},
      {name: 'tfjs, the same product', ...product, flops},
    ];
    rows.push({key, results: await rated(key, pair, quick)});
  }
  return rows;
}

async function rated(what, contenders, quick) {
  const results = await compare(what, contenders, {quick});
  for (const {name, flops} of contenders) results[name].flops = flops;
  return results;
}
