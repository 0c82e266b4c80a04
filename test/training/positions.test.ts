/** Whatever tells a transformer its positions must not hinder it from learning what its tokens say. */
import {models, training} from '../../index';
import {describeOnBackends} from '../helpers/backends';

const CYCLE = 7;
const tokens = Int32Array.from({length: 400}, (_, i) => i % CYCLE);

describeOnBackends('positions', () => {
  for (const position of ['rotary', 'learned', 'sinusoidal', 'none'] as const) {
    test(`with position '${position}' and tied embeddings, a cycle of tokens is learned in 40 steps`, async () => {
      const model = models.transformer({
        ...{vocabSize: CYCLE, dModel: 16, numLayers: 1, numHeads: 2, position, seed: 1},
        ...(position === 'learned' ? {maxLength: 16} : {}),
      });
      const {loss} = await training.train(model, tokens, {
        ...{steps: 40, batchSize: 4, length: 16, learningRate: 0.01, seed: 1},
      });
      model.dispose();
      expect(loss).toBeLessThan(0.5);
    });
  }
});
