/** The relaxed-SIMD form of the wasm kernels beside the plain one. */
import {arrays, tensors} from '../lib/attention_inputs.mjs';
import {kernelsOf, normal, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';

export const title =
  'Relaxed SIMD (opt-in) beside SIMD, causal forward and backward and products of matrices, wasm backend';
export const about =
  'The same calls with `LINEAR_ATTENTION_RELAXED_SIMD` on and off: fused multiply-adds, whose last bits depend on the machine. ' +
  'B = 1, H = 8, r = d = 64, [B,H,N,.]; products by `patches.wasmMatMul`.';

const FLAG = 'LINEAR_ATTENTION_RELAXED_SIMD';
const SIZE = 64;
/** i32x4.relaxed_trunc_f32x4_s of zeros: a module that is valid where relaxed SIMD exists. */
const PROBE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 11, 1, 9, 0, 65, 0, 253, 15, 253, 129,
  2, 11,
];

export async function run({quick}) {
  if (!WebAssembly.validate(Uint8Array.from(PROBE))) {
    return {skipped: 'this Node has no relaxed SIMD (Node 22 and later have it)'};
  }
  await useBackend('wasm');
  const relaxed = {
    before: () => tf.env().set(FLAG, true),
    after: () => tf.env().set(FLAG, false),
  };
  const rows = [];
  let kernels;
  const add = async (key, N, call) => {
    kernels ??= await kernelsOf(call);
    const contenders = [
      {name: 'relaxed SIMD', run: call, ...relaxed},
      {name: 'SIMD', run: call},
    ];
    rows.push({key, N, r: SIZE, results: await compare(`relaxed, ${key}`, contenders, {quick})});
  };
  for (const N of quick ? [128] : [1024, 4096]) {
    const inputs = tensors(arrays(N, SIZE), N);
    const attend = (q, k, v) => tfla.linearAttention(q, k, v, {causal: true});
    await add(`N=${N}`, N, () => read(attend(...inputs)));
    const gradients = tf.grads(attend);
    const dy = tf.ones(inputs[2].shape);
    await add(`N=${N} with gradients`, N, () => read(...gradients(inputs, dy)));
    tf.dispose([inputs, dy]);
  }
  const undo = tfla.patches.wasmMatMul();
  const size = quick ? 128 : 1024;
  const [a, b] = [1, 2].map((seed) => tf.tensor(normal(size * size, seed), [size, size]));
  await add(`product of ${size} x ${size}`, size, () => read(tf.matMul(a, b)));
  undo();
  tf.dispose([a, b]);
  return {rows, kernels, backend: 'wasm'};
}
