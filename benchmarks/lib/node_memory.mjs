/** Peak memory of forward and backward on tfjs-node, beside the tensors that must exist. Linux: read from /proc. */
import {readFileSync, writeFileSync} from 'node:fs';

const [HEADS, N, R] = [8, 16384, 64];

const mebibytes = (line) =>
  Number(new RegExp(`${line}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;

export async function memoryOfTraining({tf, api}) {
  await tf.setBackend('tensorflow');
  await tf.ready();
  // Made by TensorFlow, so that JavaScript holds no copies.
  const make = (n) => [1, 2, 3, 4].map((i) => tf.fill([1, HEADS, n, R], i / 8));
  const run = ([q, k, v, dy]) =>
    tf.dispose([tf.grads((...x) => api.linearAttention(...x, {causal: true}))([q, k, v], dy)]);
  const small = make(256);
  run(small);
  tf.dispose(small);
  writeFileSync('/proc/self/clear_refs', '5'); // the peak starts again from here
  const before = mebibytes('VmRSS');
  const inputs = make(N);
  run(inputs);
  const peak = mebibytes('VmHWM') - before;
  // q, k, v, output, dO, dq, dk, dv, and one float a token and head.
  const must = (HEADS * N * (8 * R + 1) * 4) / 2 ** 20;
  console.log(
    `Forward and backward at N = ${N}: peak ${peak.toFixed(0)} MiB, tensors that must exist ${must.toFixed(0)} MiB: ${(peak / must).toFixed(3)} times.`,
  );
}
