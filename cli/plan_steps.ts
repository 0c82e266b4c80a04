/** How many steps fit in a time, measured on this machine. */
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {type TrainOptions, train} from '../training';

const WARM_UP = 1;
const LEAST = 3;
/** The first steps are slow, while V8 compiles: measuring goes on for so many steps, or so great a part of the time. */
const MOST = 16;
const PART = 0.04;
/** Validation, checkpoints and saving take a part of the time as well. */
const SHARE = 0.9;

/** Trains a copy that is thrown away, so that the run itself starts from its seed. */
export async function planSteps(
  makeModel: () => LayersModel,
  tokens: Int32Array,
  options: Pick<TrainOptions, 'batchSize' | 'length' | 'accumulate' | 'workers' | 'signal'>,
  seconds: number,
): Promise<number> {
  const model = makeModel();
  try {
    const times: number[] = [];
    const enough = new AbortController();
    let spent = 0;
    let last = performance.now();
    await train(model, tokens, {
      ...options,
      signal: AbortSignal.any(options.signal ? [options.signal, enough.signal] : [enough.signal]),
      steps: WARM_UP + MOST,
      warmup: 0,
      onProgress() {
        const now = performance.now();
        times.push((now - last) / 1000);
        spent += (now - last) / 1000;
        last = now;
        if (times.length >= WARM_UP + LEAST && spent > PART * seconds) enough.abort();
      },
    });
    const perStep = Math.min(...times.slice(WARM_UP));
    return Math.max(1, Math.floor(((seconds - spent) * SHARE) / perStep));
  } finally {
    model.dispose();
  }
}
