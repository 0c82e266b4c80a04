/** A run that was stopped and resumed is bit for bit the run that was never stopped. */
import {mkdtempSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {training} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {bigram, copyWeights, stream, transformer, weightsOf} from './small_model';

// Short epochs: the run crosses several, at places that are no multiple of the batch.
const DATA = stream(100);
const RUN = {steps: 7, batchSize: 2, length: 9, learningRate: 0.02, accumulate: 3, seed: 11, every: 100};

describeOnBackends('resume', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'resume-'));
  });
  afterEach(() => {
    rmSync(folder, {recursive: true});
  });

  const models: [string, () => LayersModel][] = [
    ['a transformer with dropout', () => transformer(0.3)],
    ['a model with dropout of tfjs', () => bigram(0.3)],
  ];

  test.each(models)('%s, with accumulation, stopped after 1, 3 and 6 steps', async (_, make) => {
    await expectNoLeak(async () => {
      const start = make();
      const whole = copyWeights(make(), start);
      const reference = await training.train(whole, DATA, RUN);
      const want = weightsOf(whole);
      whole.dispose();
      for (const stop of [1, 3, 6]) {
        const checkpoint = join(folder, `after_${stop}`, 'checkpoint.bin');
        const first = copyWeights(make(), start);
        const controller = new AbortController();
        const before = await training.train(first, DATA, {
          ...RUN,
          checkpoint,
          signal: controller.signal,
          onProgress: ({step}) => step === stop && controller.abort(),
        });
        expect(before.step).toBe(stop);
        first.dispose();
        // Another model object with other initial weights, as a new process would have.
        const second = make();
        const after = await training.train(second, DATA, {...RUN, checkpoint, resume: true});
        expect([...before.history, ...after.history]).toEqual(reference.history);
        expect(weightsOf(second)).toEqual(want);
        second.dispose();
      }
      start.dispose();
    });
  });

  test('resume takes another path than the one that is written; a folder stands for its checkpoint.bin', async () => {
    const model = bigram();
    await training.train(model, DATA, {...RUN, steps: 2, checkpoint: folder});
    expect(readdirSync(folder)).toEqual(['checkpoint.bin']);
    const other = join(folder, 'other.bin');
    const {history} = await training.train(model, DATA, {
      ...RUN,
      steps: 3,
      checkpoint: other,
      resume: folder,
    });
    expect(history.map(({step}) => step)).toEqual([3]);
    expect(readdirSync(folder).sort()).toEqual(['checkpoint.bin', 'other.bin']);
    model.dispose();
  });

  test('a finished run resumes to nothing more to do', async () => {
    const model = bigram();
    const checkpoint = join(folder, 'c.bin');
    await training.train(model, DATA, {...RUN, checkpoint});
    const weights = weightsOf(model);
    const again = await training.train(model, DATA, {...RUN, checkpoint, resume: true});
    expect(again).toMatchObject({step: RUN.steps, stopped: 'finished', history: []});
    expect(weightsOf(model)).toEqual(weights);
    model.dispose();
  });

  test('another run, another model or no checkpoint is refused, and nothing changes', async () => {
    await expectNoLeak(async () => {
      const model = bigram();
      const checkpoint = join(folder, 'c.bin');
      await training.train(model, DATA, {...RUN, steps: 2, checkpoint});
      const weights = weightsOf(model);
      const again = (options: object, data = DATA, of: LayersModel = model) =>
        training.train(of, data, {...RUN, checkpoint, resume: true, ...options});
      await expect(again({seed: 12})).rejects.toThrow(/of a run with another seed \(11, now 12\)/);
      await expect(again({batchSize: 3})).rejects.toThrow(/another batchSize/);
      await expect(again({length: 8})).rejects.toThrow(/another length/);
      await expect(again({accumulate: 1})).rejects.toThrow(/another accumulate/);
      await expect(again({}, stream(101))).rejects.toThrow(/another number of tokens/);
      await expect(
        again(
          {},
          DATA.map((id) => (id + 1) % 7),
        ),
      ).rejects.toThrow(/another training data/);
      await expect(again({resume: join(folder, 'none.bin')})).rejects.toThrow(
        /there is no checkpoint to resume from at '.*none.bin'/,
      );
      expect(weightsOf(model)).toEqual(weights);
      const other = transformer();
      const otherWeights = weightsOf(other);
      await expect(again({}, DATA, other)).rejects.toThrow(/weights, the model has/);
      expect(weightsOf(other)).toEqual(otherWeights);
      other.dispose();
      model.dispose();
    });
  });
});
