/**
 * Linear attention on tfjs-node: the native operations, the composed form in TensorFlow's own, the wasm kernels,
 * onnxruntime-node's LinearAttention with a normaliser (where benchmarks/peers is installed; on one thread only),
 * pytorch-fast-transformers and PyTorch's own operations in chunks (where BENCH_PYTHON has them), and stock softmax
 * attention, interleaved in one process for each number of threads. B = 1, H = 8, r = d = 64, causal, feature map and normaliser included. Prints Markdown.
 *
 *     node benchmarks/node.mjs [--quick] [--lengths 1024,4096,16384]
 */
import {spawnSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {load, machine, machineLine} from './lib/machine.mjs';
import {memoryOfTraining} from './lib/node_memory.mjs';
import {loadSources} from './lib/sources.mjs';
import {fastTransformers} from './peers/fast_transformers.mjs';

const {values: flags} = parseArgs({
  options: {
    quick: {type: 'boolean', default: false},
    lengths: {type: 'string', default: '1024,4096,16384'},
    child: {type: 'string'},
  },
});
const [HEADS, R] = [8, 64];
/** Softmax attention is O(N^2): beyond this it says nothing new. */
const LONGEST_SOFTMAX = 2048;

/**
 * Milliseconds a call, at best and in the middle, of contenders that take turns. A turn is so many calls in a row, one
 * figure together: the others' turns leave threads asleep and caches cold, which is not what a millisecond is to measure.
 */
async function takeTurns(tf, contenders, rounds, calls) {
  const times = new Map(contenders.map(({name}) => [name, []]));
  for (let round = -2; round < rounds; round++) {
    for (const {name, backend, run} of contenders) {
      if (backend !== undefined) tf.setBackend(backend);
      const started = performance.now();
      for (let call = 0; call < calls; call++) tf.dispose(await run());
      const time = (performance.now() - started) / calls;
      if (round >= 0) times.get(name).push(time);
    }
  }
  return new Map(
    [...times].map(([name, all]) => {
      all.sort((a, b) => a - b);
      return [name, {best: all[0], middle: all[all.length >> 1]}];
    }),
  );
}

/** 8 calls at N = 1024 and less, one from 8192 on. */
const callsOfTurn = (N) => Math.max(1, Math.min(8, Math.round(8192 / N)));

const softmax = (tf, [q, k, v]) =>
  tf.tidy(() => {
    const N = q.shape[2];
    const scores = tf.matMul(tf.mul(q, 1 / Math.sqrt(R)), k, false, true);
    const hidden = tf.mul(tf.sub(1, tf.linalg.bandPart(tf.ones([N, N]), -1, 0)), -1e30);
    return tf.matMul(tf.softmax(tf.add(scores, hidden)), v);
  });

/** A maker of runs, or null where the peers are not installed. */
async function onnxruntimeOrNull() {
  if (!existsSync(new URL('peers/node_modules/onnxruntime-node', import.meta.url))) return null;
  const {onnxruntime} = await import('./peers/onnxruntime.mjs');
  const {linearNormalised} = await import('./peers/onnx_attention.mjs');
  const {session, tensor} = await onnxruntime('node');
  // Its operator has no feature map, and wants [B,N,H,.]; the same numbers stand for other tokens there.
  const features = (x) => x.map((value) => (value > 0 ? value + 1 : Math.exp(value)));
  return async ([q, k, v], N) => {
    const width = R + 8;
    // The normaliser is a column of ones.
    const wide = Float32Array.from({length: HEADS * N * width}, (_, i) => {
      const column = i % width;
      return column < R ? v[Math.floor(i / width) * R + column] : column === R ? 1 : 0;
    });
    const made = await session(linearNormalised(HEADS, R, R, width));
    const feeds = {
      query: tensor(features(q), [1, N, HEADS * R]),
      key: tensor(features(k), [1, N, HEADS * R]),
      value: tensor(wide, [1, N, HEADS * width]),
    };
    return async () => {
      await made.run(feeds, ['output']);
    };
  };
}

/** Chunk lengths that PyTorch's own operations are tried with. */
const CHUNKS = [32, 64, 128];

/** A maker of PyTorch's contenders, or null where Python has no pytorch-fast-transformers. */
async function pytorchOrNull(threads) {
  const peers = [];
  const start = async () => {
    const peer = await fastTransformers(threads);
    if (peer !== null) peers.push(peer);
    return peer;
  };
  if ((await start()) === null) return null;
  for (let i = 1; i < 4; i++) await start();
  const [plain, gradients, chunked, chunkedGradients] = peers;
  const contender = (name, peer) => ({
    name,
    run: async () => {
      await peer.time();
    },
  });
  return {
    /** `want` is the output that PyTorch's must agree with. */
    async make(values, N, want) {
      const inputs = values.slice(0, 3);
      await plain.make(N, R, inputs);
      await gradients.make(N, R, values);
      const C = await fastest(CHUNKS, (length) => chunked.make(N, R, inputs, length), chunked.time);
      await chunked.make(N, R, inputs, C);
      await chunkedGradients.make(N, R, values, C);
      const got = await chunked.result();
      const worst = got.reduce((most, x, i) => Math.max(most, Math.abs(x - want[i])), 0);
      if (!(worst < 1e-3)) throw new Error(`PyTorch in chunks and the native operation differ by ${worst}`);
      return [
        contender('fast-transformers forward', plain),
        contender('fast-transformers forward + backward', gradients),
        contender('PyTorch in chunks forward', chunked),
        contender('PyTorch in chunks forward + backward', chunkedGradients),
      ];
    },
    end() {
      for (const peer of peers) peer.end();
    },
  };
}

/** The value whose best of five timings is the least. */
async function fastest(values, prepare, time) {
  const best = [];
  for (const value of values) {
    await prepare(value);
    const times = [];
    for (let i = 0; i < 5; i++) times.push(await time());
    best.push(Math.min(...times));
  }
  return values[best.indexOf(Math.min(...best))];
}

/** Nothing is timed that is wrong. */
function agree(tf, one, other) {
  tf.setBackend('tensorflow');
  const [a, b] = [one(), other()].map((x) => {
    const values = x.dataSync();
    x.dispose();
    return values;
  });
  const worst = a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i])), 0);
  if (!(worst < 1e-4)) throw new Error(`the native operation and the composed form differ by ${worst}`);
}

async function measure(threads) {
  const {tf, api, disableNative} = await loadSources();
  for (const backend of ['wasm', 'tensorflow']) {
    await tf.setBackend(backend);
    await tf.ready();
  }
  const onnx = threads === 1 ? await onnxruntimeOrNull() : null;
  const python = await pytorchOrNull(threads);
  console.log(`### ${threads} thread${threads > 1 ? 's' : ''}\n`);
  console.log('| | N | best ms | median ms | GFLOP/s (best) |\n|---|---|---|---|---|');
  for (const N of flags.lengths.split(',').map(Number)) {
    const values = [1, 2, 3, 4].map((seed) =>
      tf.tidy(() => tf.randomNormal([HEADS * N * R], 0, 1, 'float32', seed).dataSync()),
    );
    const on = {};
    for (const backend of ['tensorflow', 'wasm']) {
      tf.setBackend(backend);
      on[backend] = values.map((x) => tf.tensor(x, [1, HEADS, N, R]));
    }
    const attention = (...x) => api.linearAttention(...x, {causal: true});
    const forward = (backend) => () => attention(...on[backend].slice(0, 3));
    const both = (backend) => () => tf.grads(attention)(on[backend].slice(0, 3), on[backend][3]);
    const composed = (f) => () => {
      disableNative(true);
      try {
        return f();
      } finally {
        disableNative(false);
      }
    };
    agree(tf, forward('tensorflow'), composed(forward('tensorflow')));
    const backend = 'tensorflow';
    const contenders = [
      {backend, name: 'native forward', run: forward(backend)},
      {backend, name: 'native forward + backward', run: both(backend)},
      {backend, name: 'composed forward', run: composed(forward(backend))},
      {backend, name: 'composed forward + backward', run: composed(both(backend))},
      {backend: 'wasm', name: 'wasm forward', run: forward('wasm')},
      {backend: 'wasm', name: 'wasm forward + backward', run: both('wasm')},
    ];
    if (N <= LONGEST_SOFTMAX) {
      contenders.push({backend, name: 'softmax, stock', run: () => softmax(tf, on[backend])});
    }
    if (onnx !== null) {
      contenders.push({name: 'onnxruntime-node, normalised', run: await onnx(values, N)});
    }
    if (python !== null) {
      tf.setBackend(backend);
      const want = tf.tidy(() => forward(backend)().dataSync());
      contenders.push(...(await python.make(values, N, want)));
    }
    const times = await takeTurns(
      tf,
      contenders,
      flags.quick ? 3 : Math.max(7, Math.min(25, Math.round(40000 / N))),
      callsOfTurn(N),
    );
    for (const [name, {best, middle}] of times) {
      const rate = name === 'softmax, stock' ? '' : ((4e-6 * HEADS * N * R * R) / best).toFixed(0);
      console.log(`| ${name} | ${N} | ${best.toFixed(2)} | ${middle.toFixed(2)} | ${rate} |`);
    }
    const best = (name) => times.get(name)?.best ?? Number.NaN;
    const over = (name, ours = 'native forward') => (best(name) / best(ours)).toFixed(2);
    console.log(
      `| times native forward | ${N} | composed ${over('composed forward')}, wasm ${over('wasm forward')}, onnxruntime-node ${over('onnxruntime-node, normalised')}, ` +
        `fast-transformers ${over('fast-transformers forward')}, with gradients ${over('fast-transformers forward + backward', 'native forward + backward')}, ` +
        `PyTorch in chunks ${over('PyTorch in chunks forward')}, with gradients ${over('PyTorch in chunks forward + backward', 'native forward + backward')} | ` +
        `backward ${(over('native forward + backward') - 1).toFixed(2)} | |`,
    );
    tf.dispose(Object.values(on).flat());
  }
  python?.end();
  console.log();
}

if (flags.child === undefined) {
  console.log(`${machineLine(machine())}; load ${load()}\n`);
  for (const child of ['2', '1', 'memory']) {
    const env = {...process.env, TF_CPP_MIN_LOG_LEVEL: '2'};
    delete env.TFJS_LINEAR_ATTENTION_NATIVE;
    if (child !== 'memory') env.TF_NUM_INTRAOP_THREADS = child;
    const args = [fileURLToPath(import.meta.url), '--child', child, '--lengths', flags.lengths];
    const {status} = spawnSync(process.execPath, flags.quick ? [...args, '--quick'] : args, {
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (status !== 0) process.exit(1);
  }
} else if (flags.child === 'memory') {
  await memoryOfTraining(await loadSources());
} else {
  await measure(Number(flags.child));
}
