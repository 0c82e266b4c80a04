import * as tf from '@tensorflow/tfjs-core';
import {addAll} from '../src/add_all';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {take} from './helpers/numbers';

describeOnBackends('addAll', () => {
  test.each([1, 2, 7, 8, 13, 14, 40])('adds %i tensors, never more than 7 at once', async (n) => {
    const adding = jest.spyOn(tf, 'addN');
    await expectNoLeak(() => {
      const terms = Array.from({length: n}, (_, i) => tf.tensor1d([i, 1]));
      expect(take(addAll(terms))).toEqual([(n * (n - 1)) / 2, n]);
      tf.dispose(terms);
    });
    for (const [terms] of adding.mock.calls) {
      expect(terms.length).toBeLessThanOrEqual(7);
    }
    adding.mockRestore();
  });
});
