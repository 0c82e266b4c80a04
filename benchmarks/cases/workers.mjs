/** training.train on one thread and on all cores. */
import {availableParallelism} from 'node:os';
import {assertAgree} from '../lib/agree.mjs';
import {GPT, ourModel} from '../lib/gpt.mjs';
import {normal, tfla, useBackend} from '../lib/ours.mjs';

export const title = '`training.train` with worker threads';
export const about =
  'The character GPT with linear attention; two micro-batches a step, taken one after the other by one thread or each by a thread of its own ' +
  '(both give the same losses). Runs alternate; the first 2 steps of each are not counted.';

const SHAPE = {batchSize: 16, length: 128, accumulate: 2};
const WARM_UP = 2;

export async function run({quick}) {
  await useBackend('wasm');
  const undo = tfla.patches.wasmMatMul();
  const threads = Math.min(2, availableParallelism());
  const shape = quick ? {batchSize: 2, length: 32, accumulate: 2} : SHAPE;
  const tokens = Int32Array.from(normal(20000, 5), (x) => Math.floor(Math.abs(x) * 1e4) % GPT.vocab);
  const results = {};
  const losses = {};
  for (let round = 0; round < (quick ? 1 : 2); round++) {
    for (const workers of [threads, 1]) {
      const name = `workers: ${workers}`;
      const {times, last} = await timedRun(tokens, {...shape, workers, steps: WARM_UP + (quick ? 2 : 4)});
      results[name] ??= {timings: [], error: null, tokens: shape.batchSize * shape.length * 2};
      results[name].timings.push(...times);
      losses[name] = last;
    }
  }
  undo();
  const [all, one] = Object.values(losses);
  if (one !== undefined) assertAgree('workers, losses', all, one, {rms: 1e-5, max: 1e-4});
  return {
    rows: [{key: `T=${shape.length} x ${shape.batchSize} x 2`, results}],
    kernels: ['LinearAttention', 'LinearAttentionGrad', 'BatchMatMul (ours)'],
    backend: 'wasm',
    unit: 'tokens/s',
    threads,
  };
}

async function timedRun(tokens, options) {
  const model = ourModel('linear', options.length);
  const times = [];
  let before = performance.now();
  const {history} = await tfla.training.train(model, tokens, {
    ...options,
    seed: 1,
    onProgress: ({step}) => {
      const now = performance.now();
      if (step > WARM_UP) times.push(now - before);
      before = now;
    },
  });
  model.dispose();
  return {times, last: history.map(({loss}) => loss)};
}
