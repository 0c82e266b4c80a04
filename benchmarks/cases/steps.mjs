/** Memory over 10,000 decoding steps, and 1,000 forward and backward calls: no timing. */
import {arrays, HEADS, tensors} from '../lib/attention_inputs.mjs';
import {normal, tf, tfla, useBackend} from '../lib/ours.mjs';

export const title = 'Memory over many calls';
export const about =
  "Growth between the first tenth and the end. Tensors and bytes are tfjs's own count; linear memory is that of tfjs's wasm module, " +
  "which holds everything our kernels allocate there; heap is V8's after a collection.";

const SIZE = 64;

export async function run({quick}) {
  const rows = [];
  for (const backend of ['wasm', 'cpu']) {
    await useBackend(backend);
    const steps = quick ? 1000 : 10000;
    rows.push(grown(`${backend}, ${steps} steps`, steps, decoder()));
    rows.push(grown(`${backend}, ${steps / 10} forward and backward`, steps / 10, trainer()));
  }
  return {
    rows,
    kernels: ['LinearAttentionStep', 'LinearAttention', 'LinearAttentionGrad'],
    backend: 'wasm and cpu',
  };
}

function grown(key, count, {call, end}) {
  const snapshot = () => {
    globalThis.gc();
    const {numTensors, numBytes} = tf.memory();
    return {
      tensors: numTensors,
      'tensor bytes': numBytes,
      'linear memory, bytes': tf.backend().wasm?.HEAPU8.buffer.byteLength ?? 0,
      'heap, KiB': Math.round(process.memoryUsage().heapUsed / 1024),
    };
  };
  let start;
  for (let i = 0; i < count; i++) {
    if (i === Math.ceil(count / 10)) start = snapshot();
    call();
  }
  const last = snapshot();
  end();
  return {
    key,
    figures: Object.fromEntries(Object.keys(start).map((name) => [name, last[name] - start[name]])),
  };
}

function decoder() {
  const inputs = [1, 2, 3].map((seed) => tf.tensor(normal(HEADS * SIZE, seed), [1, HEADS, SIZE]));
  let state = tfla.zeroState({batchSize: 1, numHeads: HEADS, keyDim: SIZE, valueDim: SIZE});
  return {
    call() {
      const next = tfla.linearAttentionStep(...inputs, state);
      next.output.dataSync();
      next.output.dispose();
      tfla.disposeState(state);
      state = next.state;
    },
    end: () => {
      tfla.disposeState(state);
      tf.dispose(inputs);
    },
  };
}

function trainer() {
  const inputs = tensors(arrays(64, 16), 64);
  const gradients = tf.grads((q, k, v) => tf.sum(tfla.linearAttention(q, k, v, {causal: true})));
  return {
    call: () => tf.dispose(gradients(inputs)),
    end: () => tf.dispose(inputs),
  };
}
