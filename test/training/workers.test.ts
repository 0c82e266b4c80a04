/** Training on several threads (dist/worker.cjs): the same result as on one, and threads that end whatever happens. */
import * as tf from '@tensorflow/tfjs-core';
import {layers, sequential} from '@tensorflow/tfjs-layers';
import {patches, training} from '../../index';
import {isApplied} from '../../src/patches/patch';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {bigram, copyWeights, stream, transformer, VOCAB, weightsOf} from './small_model';

const DATA = stream(400);
const RUN = {steps: 4, batchSize: 2, length: 8, learningRate: 0.02, seed: 5};

const threadModule = process.getBuiltinModule('node:worker_threads');
const {Worker} = threadModule;
/** How many worker threads of this test are alive. */
let alive = 0;
class CountedWorker extends Worker {
  constructor(...args: ConstructorParameters<typeof Worker>) {
    super(...args);
    alive += 1;
    this.on('exit', () => {
      alive -= 1;
    });
  }
}
beforeAll(() => {
  threadModule.Worker = CountedWorker;
});
afterAll(() => {
  threadModule.Worker = Worker;
});

describeOnBackends('workers', (backend) => {
  let warnings: string[] = [];
  beforeEach(() => {
    warnings = [];
    jest.spyOn(console, 'warn').mockImplementation((text) => void warnings.push(text));
  });
  afterEach(() => {
    jest.restoreAllMocks();
    expect(alive).toBe(0);
  });

  test('two workers, dropout included, do what one thread does that accumulates two micro-batches', async () => {
    await expectNoLeak(async () => {
      const start = transformer();
      const run = async (options: object) => {
        const model = copyWeights(transformer(), start);
        const {history} = await training.train(model, DATA, {...RUN, ...options});
        const weights = weightsOf(model);
        model.dispose();
        return {losses: history.map(({loss}) => loss), weights};
      };
      const one = await run({accumulate: 2});
      for (const two of [await run({workers: 2}), await run({workers: 2, accumulate: 2})]) {
        expect(difference(two.losses, one.losses, FLOAT32)).toBeNull();
        two.weights.forEach((values, i) => {
          // Adam divides by the gradient's size: where a gradient is rounding only, so is the direction.
          expect(difference(values, one.weights[i]!, {rms: 1e-3, max: 5e-3}, 1e-4)).toBeNull();
        });
      }
      expect((await run({accumulate: 2, seed: 6})).losses).not.toEqual(one.losses);
      start.dispose();
    });
  });

  test('workers apply patches.wasmMatMul when this thread did', () => {
    const before = isApplied('wasmMatMul');
    const undo = patches.wasmMatMul();
    expect(isApplied('wasmMatMul')).toBe(true);
    undo();
    expect([before, isApplied('wasmMatMul')]).toEqual([false, false]);
  });

  test('three workers share six micro-batches', async () => {
    const start = bigram();
    const losses = [];
    for (const workers of [1, 3]) {
      const model = copyWeights(bigram(), start);
      const {history} = await training.train(model, DATA, {...RUN, accumulate: 6, workers});
      losses.push(history.map(({loss}) => loss));
      model.dispose();
    }
    expect(difference(losses[1]!, losses[0]!, FLOAT32)).toBeNull();
    start.dispose();
    // Threads on another backend than this one are not kept quiet about.
    const said = `threads on the wasm backend, and this one is on '${backend}'`;
    expect(warnings).toEqual(backend === 'wasm' ? [] : [expect.stringContaining(said)]);
  });

  test('an abort ends the threads', async () => {
    const model = bigram();
    const controller = new AbortController();
    const result = await training.train(model, DATA, {
      ...RUN,
      steps: 1000,
      workers: 2,
      signal: controller.signal,
      onProgress: ({step}) => {
        expect(alive).toBe(1);
        if (step === 2) {
          controller.abort();
        }
      },
    });
    expect(result).toMatchObject({step: 2, stopped: 'aborted'});
    model.dispose();
  });

  test('a NaN in the weights, which every thread sees, ends the threads with the usual error', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      tf.tidy(() => model.setWeights(model.getWeights().map((weight) => tf.mul(weight, Number.NaN))));
      await expect(training.train(model, DATA, {...RUN, workers: 2})).rejects.toThrow(
        /the loss is NaN in step 1/,
      );
      model.dispose();
    });
  });

  test('an error in onProgress ends the threads', async () => {
    const model = bigram();
    const onProgress = () => {
      throw new Error('no more');
    };
    await expect(training.train(model, DATA, {...RUN, workers: 2, onProgress})).rejects.toThrow('no more');
    model.dispose();
  });

  test('a layer that workers do not know is a clear error', async () => {
    class Own extends layers.Layer {
      static className = 'OwnLayerOfTheTest';
      override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
        return tf.clone(Array.isArray(inputs) ? inputs[0]! : inputs);
      }
    }
    tf.serialization.registerClass(Own);
    await expectNoLeak(async () => {
      const model = sequential({
        layers: [
          layers.embedding({inputDim: VOCAB, outputDim: VOCAB, inputShape: [null] as never}),
          new Own({}),
        ],
      });
      await expect(training.train(model, DATA, {...RUN, workers: 2})).rejects.toThrow(
        /training.train: a worker failed: Unknown layer: OwnLayerOfTheTest.*need workers: 1/s,
      );
      model.dispose();
    });
  });
});
