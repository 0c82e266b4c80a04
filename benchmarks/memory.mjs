/**
 * Memory of a training step by length: `node benchmarks/memory.mjs` after `npm run build`; on the cpu backend.
 *
 * A causal LinearAttention layer (8 heads, r = d = 64, batch 1) is trained for one step at N and at 2N. Peak memory is
 * tfjs's own count (tf.profile's peakBytes) and the linear memory of our WebAssembly modules. To see what a kernel makes beside its
 * tensors, every typed array made in the step is counted too, by wrapping the constructor: all of them together, and the
 * largest. Nothing may have N*r*d or N*N elements. Exits with 1 when a bound is exceeded.
 */
import '@tensorflow/tfjs-backend-cpu';
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {layers} from 'tfjs-linear-attention';

const LENGTHS = [4096, 8192];
const HEADS = 8;
const DIM = 64;
const FEATURES = 16;
const MAX_RATIO = 2.1;

/** The linear memories of WebAssembly modules; they only grow, so lengths are measured in rising order. */
const memories = [];
WebAssembly.Memory = new Proxy(WebAssembly.Memory, {
  construct(target, args) {
    memories.push(new target(...args));
    return memories.at(-1);
  },
});
const linearMemory = () => memories.reduce((sum, {buffer}) => sum + buffer.byteLength, 0);

/** Counts what `Float32Array` makes while `body` runs. */
async function countArrays(body) {
  const Original = globalThis.Float32Array;
  let largest = 0;
  let bytes = 0;
  globalThis.Float32Array = new Proxy(Original, {
    construct(target, args, newTarget) {
      const made = Reflect.construct(
        target,
        args,
        newTarget === globalThis.Float32Array ? target : newTarget,
      );
      // A view of a buffer that exists already makes nothing.
      if (!(args[0] instanceof ArrayBuffer)) {
        largest = Math.max(largest, made.length);
        bytes += made.byteLength;
      }
      return made;
    },
  });
  try {
    return {result: await body(), largest, bytes: () => bytes, peak: () => largest};
  } finally {
    globalThis.Float32Array = Original;
  }
}

async function measure(length) {
  const model = tfl.sequential({
    layers: [
      tfl.layers.inputLayer({inputShape: [null, FEATURES]}),
      layers.linearAttention({numHeads: HEADS, keyDim: DIM, causal: true}),
    ],
  });
  model.compile({optimizer: 'sgd', loss: 'meanSquaredError'});
  const x = tf.randomNormal([1, length, FEATURES], 0, 1, 'float32', 1);
  const start = tf.memory().numBytes;
  const counted = await countArrays(() => tf.profile(() => model.trainOnBatch(x, x)));
  const profile = counted.result;
  const sizes = profile.kernels.flatMap(({name, outputShapes}) =>
    outputShapes.map((shape) => ({name, shape, size: shape.reduce((a, b) => a * b, 1)})),
  );
  const largestTensor = sizes.reduce((a, b) => (b.size > a.size ? b : a));
  tf.dispose([x, model]);
  return {
    length,
    peak: profile.peakBytes - start,
    linear: linearMemory(),
    arrays: counted.bytes(),
    largestArray: counted.peak(),
    largestTensor,
    kernels: new Set(profile.kernels.map(({name}) => name)).has('LinearAttentionGrad'),
  };
}

await tf.setBackend('cpu');
await measure(256);
const rows = [];
for (const length of LENGTHS) rows.push(await measure(length));

const mib = (bytes) => (bytes / 2 ** 20).toFixed(1);
console.log(
  '| N | peak of the step, MiB | WebAssembly memory, MiB | all arrays made, MiB | largest tensor | largest array, elements | N*r*d | N*N |',
);
console.log('|---|---|---|---|---|---|---|---|');
for (const {length, peak, linear, arrays, largestArray, largestTensor} of rows) {
  console.log(
    `| ${length} | ${mib(peak)} | ${mib(linear)} | ${mib(arrays)} | ${largestTensor.name} [${largestTensor.shape}] | ${largestArray} | ` +
      `${length * DIM * DIM} | ${length * length} |`,
  );
}
const [a, b] = rows;
const ratio = (b.peak + b.linear) / (a.peak + a.linear);
const arrayRatio = b.arrays / a.arrays;
console.log(
  `\nratio of the peaks ${ratio.toFixed(3)}, of all arrays ${arrayRatio.toFixed(3)} (at most ${MAX_RATIO})`,
);
const small = rows.every(
  ({length, largestArray, largestTensor}) =>
    Math.max(largestArray, largestTensor.size) < Math.min(length * DIM * DIM, length * length),
);
const ours = rows.every(({kernels}) => kernels);
if (!(ratio <= MAX_RATIO && arrayRatio <= MAX_RATIO && small && ours)) {
  console.log('exceeded');
  process.exitCode = 1;
}
