/** What test/browser/warmup.test.ts asks of a page. */
import * as tf from '@tensorflow/tfjs-core';
import {generation, models, warmup} from '../../index';
import {gpuCounts} from './gpu_counts';

interface Warmed {
  result: generation.WarmupResult;
  /** The last report of the phase 'compile', and how many there were. */
  compiled: generation.WarmupProgress | undefined;
  reports: number;
  /** Programs that the page compiled meanwhile. */
  compiles: number;
  /** Programs that a call, a stream and a gradient of the same sizes compiled afterwards. */
  later: number;
  /** Largest distance between the call's last logits and the stream's. */
  distance: number;
  leaked: number;
}

const TOKENS = [1, 2, 3, 4, 5];

async function warmUpModel(): Promise<Warmed> {
  const model = models.transformer({vocabSize: 7, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
  const reports: generation.WarmupProgress[] = [];
  const before = {...gpuCounts};
  const tensors = tf.memory().numTensors;
  const result = await warmup(model, {
    uses: ['predict', 'stream', 'train'],
    length: TOKENS.length,
    onProgress: (progress) => reports.push(progress),
  });
  const leaked = tf.memory().numTensors - tensors;
  const warm = {...gpuCounts};
  const logits = tf.tidy(() => {
    const all = model.predict(tf.tensor2d([TOKENS], undefined, 'int32')) as tf.Tensor;
    return tf.slice(all, [0, TOKENS.length - 1, 0], [1, 1, 7]);
  });
  const sliced = gpuCounts.compiles;
  const reading = generation.stream(model);
  tf.dispose(reading.prefill(TOKENS.slice(0, 4)));
  const streamed = reading.step(5);
  const [got, want] = [await streamed.data(), await logits.data()];
  tf.dispose([logits, streamed]);
  reading.dispose();
  const compiling = reports.filter(({phase}) => phase === 'compile');
  return {
    result,
    compiled: compiling.at(-1),
    reports: compiling.length,
    compiles: warm.compiles - before.compiles,
    later: sliced - warm.compiles,
    distance: Math.max(...Array.from(want, (x, i) => Math.abs(x - got[i]))),
    leaked,
  };
}

Object.assign(globalThis, {warmUpModel});
