/** One token: linear attention's step against onnxruntime's, and against softmax attention over a cache. */
import {HEADS} from '../lib/attention_inputs.mjs';
import {features, kernelsOf, normal, read, tf, tfla, useBackend} from '../lib/ours.mjs';
import {compare} from '../lib/timing.mjs';
import {linearRaw, softmax} from '../peers/onnx_attention.mjs';
import {onnxruntime} from '../peers/onnxruntime.mjs';
import {softmaxStep} from '../peers/tfjs_softmax.mjs';

export const title = 'One decoding step, B = 1, H = 8, r = d = 64, wasm backend, one thread';
export const about =
  'The state is carried from step to step, the output is read back. Ours moves its state on in place; as values it is a new state ' +
  'a step, as onnxruntime has it. Linear attention does the same work at every position. ' +
  'The softmax peers attend over a cache that is already in place: adding the token to it is not timed (stock tfjs would copy the cache).';

const SIZE = 64;
/**
 * Steps a timing. V8 optimises the last of tfjs's functions after some 5000 steps, about as many as a model of 8 layers
 * takes for 600 tokens: so many are the warm-ups.
 */
const CALLS = 1000;
/** Steps a timing of what attends over a cache of 128 tokens; of longer ones as many as take the same time. */
const SOFTMAX_CALLS = 200;
const POSITIONS = [128, 1024, 4096, 16384];

export async function run({quick}) {
  await useBackend('wasm');
  const runtimes = {web: await onnxruntime('web'), node: await onnxruntime('node')};
  const rows = [];
  const kernels = await linearRow(runtimes, quick, rows);
  for (const position of quick ? POSITIONS.slice(0, 2) : POSITIONS) {
    const results = await softmaxResults(runtimes, position, quick);
    rows.push({key: `position ${position}`, N: position, r: SIZE, results});
  }
  return {rows, kernels, backend: 'wasm', peers: Object.values(runtimes).map(({name}) => name)};
}

const token = () => [1, 2, 3].map((seed) => normal(HEADS * SIZE, seed));

/** Our step, its state living in tfjs: moved on in place, or a new one a step (asValue). run() gives the output. */
function ourStep([q, k, v], options = {}, asValue = false) {
  const inputs = [q, k, v].map((values) => tf.tensor(values, [1, HEADS, SIZE]));
  const zero = () => tfla.zeroState({batchSize: 1, numHeads: HEADS, keyDim: SIZE, valueDim: SIZE});
  let state = zero();
  const reset = () => {
    tfla.disposeState(state);
    state = zero();
  };
  const inPlace = () => read(tfla.linearAttentionStepInPlace(...inputs, state, options));
  const value = () => {
    const next = tfla.linearAttentionStep(...inputs, state, options);
    tfla.disposeState(state);
    state = next.state;
    return read(next.output);
  };
  return {run: asValue ? value : inPlace, reset};
}

/** onnxruntime's step, its state living in the tensors that it takes and gives. */
async function onnxStep({session, tensor}, [q, k, v]) {
  const made = await session(linearRaw(HEADS, SIZE, SIZE, true));
  const row = (values) => tensor(values, [1, 1, HEADS * SIZE]);
  const feeds = {query: row(features(q)), key: row(features(k)), value: row(v)};
  const shape = [1, HEADS, SIZE, SIZE];
  const zero = () => tensor(new Float32Array(HEADS * SIZE * SIZE), shape);
  let state = zero();
  return {
    reset: () => {
      state = zero();
    },
    run: async () => {
      const {output, present_state: next} = await made.run({...feeds, past_state: state}, [
        'output',
        'present_state',
      ]);
      state = next;
      return output.data;
    },
  };
}

async function linearRow(runtimes, quick, rows) {
  const values = token();
  const ours = ourStep(values);
  const kernels = await kernelsOf(() => ours.run());
  ours.reset();
  // Two steps from an empty state: the second one has read the state that the first one wrote.
  const raw = ourStep(values, {normalize: false});
  raw.run();
  const expect = raw.run();
  const value = ourStep(values, {}, true);
  const contenders = [
    {name: 'ours', run: ours.run, calls: CALLS},
    {name: 'ours, states as values', run: value.run, calls: CALLS},
  ];
  for (const [kind, runtime] of Object.entries(runtimes)) {
    const step = await onnxStep(runtime, values);
    await step.run();
    contenders.push({name: `onnxruntime-${kind}, linear step, raw`, run: step.run, calls: CALLS, expect});
  }
  rows.push({key: 'linear', N: 1, r: SIZE, results: await compare('decode', contenders, {quick})});
  return kernels;
}

async function softmaxResults(runtimes, position, quick) {
  const [q] = token();
  // [L,H,size]: onnxruntime's layout.
  const [keys, values] = [4, 5].map((seed) => normal(position * HEADS * SIZE, seed));
  const cache = [keys, values].map((x) => tf.tensor(x, [position, HEADS, SIZE]));
  const keysTransposed = tf.transpose(cache[0], [1, 2, 0]);
  const heads = tf.transpose(cache[1], [1, 0, 2]);
  const query = tf.tensor(q, [HEADS, 1, SIZE]);
  const calls = Math.max(1, Math.round((SOFTMAX_CALLS * 128) / position));
  const ours = ourStep(token());
  const stock = () => read(softmaxStep(query, keysTransposed, heads));
  const expect = stock();
  const contenders = [
    {name: 'ours', run: ours.run, calls: CALLS},
    {name: 'stock tfjs, softmax over a cache', run: stock, calls, expect},
  ];
  for (const [kind, {session, tensor}] of Object.entries(runtimes)) {
    const made = await session(softmax(HEADS, SIZE, SIZE, false));
    const feeds = {
      query: tensor(q, [1, 1, HEADS * SIZE]),
      key: tensor(keys, [1, position, HEADS * SIZE]),
      value: tensor(values, [1, position, HEADS * SIZE]),
    };
    const run = async () => (await made.run(feeds, ['output'])).output.data;
    contenders.push({name: `onnxruntime-${kind}, softmax over a cache`, run, calls, expect});
  }
  const results = await compare(`decode at ${position}`, contenders, {quick});
  tf.dispose([cache, keysTransposed, heads, query]);
  return results;
}
