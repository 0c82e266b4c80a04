/** cos and sin from their series, which GPU backends use: values and derivatives to float32 accuracy. */
import * as tf from '@tensorflow/tfjs-core';
import {accurateCos, accurateSin} from '../src/circular';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';

describeOnBackends('cosine and sine from their series', () => {
  const X = Array.from({length: 401}, (_, i) => (i - 200) / 7);
  const minusSin = (x: number) => -Math.sin(x);
  const minusCos = (x: number) => -Math.cos(x);

  test.each([
    ['cos', accurateCos, [Math.cos, minusSin, minusCos]],
    ['sin', accurateSin, [Math.sin, Math.cos, minusSin]],
  ] as const)('%s, its derivative and its second derivative are right up to |x| = 28', async (_, f, want) => {
    await expectNoLeak(() =>
      tf.tidy(() => {
        const x = tf.tensor(X);
        const slope = (y: tf.Tensor) => tf.grad(f)(y);
        [f, slope, (y: tf.Tensor) => tf.grad((z: tf.Tensor) => tf.sum(slope(z)))(y)].forEach((g, order) => {
          expect(difference(g(x).dataSync(), X.map(want[order]), FLOAT32, 1e-6)).toBeNull();
        });
      }),
    );
  });
});
