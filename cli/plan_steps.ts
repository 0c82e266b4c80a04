/** How many steps fit in a time, measured on this machine. */
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {type TrainOptions, train} from '../training';

const WARM_UP = 1;
const MEASURED = 3;
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
    let last = performance.now();
    await train(model, tokens, {
      ...options,
      steps: WARM_UP + MEASURED,
      warmup: 0,
      onProgress() {
        times.push((performance.now() - last) / 1000);
        last = performance.now();
      },
    });
    const perStep = Math.min(...times.slice(WARM_UP));
    const spent = times.reduce((a, b) => a + b, 0);
    return Math.max(1, Math.floor(((seconds - spent) * SHARE) / perStep));
  } finally {
    model.dispose();
  }
}
