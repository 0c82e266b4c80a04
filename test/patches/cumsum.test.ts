import * as tf from '@tensorflow/tfjs-core';
import {cumsumGradient} from '../../src/patches';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {randomNumbers} from '../helpers/random_numbers';

const SHAPE: [number, number, number] = [3, 3, 4];
const X = randomNumbers(36, 1);
const DY = randomNumbers(36, 2);

/** The gradient by definition: x[s] reaches every sum whose range holds s. */
function reference(axis: number, exclusive: boolean, reverse: boolean): Float64Array {
  const stride = SHAPE.slice(axis + 1).reduce((a, b) => a * b, 1);
  const place = (i: number) => Math.floor(i / stride) % SHAPE[axis];
  return Float64Array.from(DY, (_, s) => {
    let sum = 0;
    for (let t = 0; t < 36; t++) {
      const sameLine = t - place(t) * stride === s - place(s) * stride;
      const ahead = (place(t) - place(s)) * (reverse ? -1 : 1);
      sum += sameLine && (exclusive ? ahead > 0 : ahead >= 0) ? DY[t] : 0;
    }
    return sum;
  });
}

const flags = [false, true];
const CASES = [0, 1, 2].flatMap((axis) =>
  flags.flatMap((exclusive) => flags.map((reverse) => ({axis, exclusive, reverse}))),
);

describeOnBackends('patches.cumsumGradient', () => {
  let undo: () => void;
  beforeEach(() => {
    undo = cumsumGradient();
  });
  afterEach(() => undo());

  test.each(CASES)('axis $axis, exclusive $exclusive, reverse $reverse: equals the definition', (c) => {
    const {axis, exclusive, reverse} = c;
    tf.tidy(() => {
      const f = (x: tf.Tensor) => tf.cumsum(x, axis, exclusive, reverse);
      const gradient = tf.grad(f)(tf.tensor3d(X, SHAPE), tf.tensor3d(DY, SHAPE));
      expect(gradient.shape).toEqual(SHAPE);
      expect(difference(gradient.dataSync(), reference(axis, exclusive, reverse), FLOAT32)).toBeNull();
    });
  });

  test('can be differentiated twice', () => {
    tf.tidy(() => {
      // f = sum of squares of the sums [x0, x0 + x1]: f' = [4 x0 + 2 x1, 2 x0 + 2 x1]
      const f = (x: tf.Tensor) => tf.sum(tf.square(tf.cumsum(x, 0)));
      const second = tf.grad((x) => tf.sum(tf.mul(tf.grad(f)(x), [[1], [10]])))(tf.tensor2d([[1], [2]]));
      expect(Array.from(second.dataSync())).toEqual([24, 22]);
    });
  });

  test('leaves nothing behind', async () => {
    const x = tf.tensor3d(X, SHAPE);
    await expectNoLeak(() => tf.dispose(tf.grad((x) => tf.sum(tf.square(tf.cumsum(x, 1))))(x)));
    x.dispose();
  });

  test("repairs what tfjs's own gradient gets wrong", () => {
    undo();
    tf.tidy(() => {
      const x = tf.ones([3, 3]);
      const dy = tf.tensor2d([1, 2, 3, 4, 5, 6, 7, 8, 9], [3, 3]);
      const stock = tf
        .grad((x) => tf.cumsum(x, 0))(x, dy)
        .arraySync();
      const take = cumsumGradient();
      const ours = tf.grad((x) => tf.cumsum(x, 0))(x, dy);
      expect(ours.arraySync()).toEqual([
        [12, 15, 18],
        [11, 13, 15],
        [7, 8, 9],
      ]);
      expect(stock).toEqual(tf.transpose(ours).arraySync());
      take();
    });
  });

  test('is idempotent, and undo restores the gradient that was there', () => {
    undo();
    const stock = tf.getGradient(tf.Cumsum);
    const first = cumsumGradient();
    const ours = tf.getGradient(tf.Cumsum);
    expect(ours).not.toBe(stock);
    const second = cumsumGradient();
    expect(tf.getGradient(tf.Cumsum)).toBe(ours);
    first();
    expect(tf.getGradient(tf.Cumsum)).toBe(stock);
    second();
    expect(tf.getGradient(tf.Cumsum)).toBe(stock);
  });

  test('uses the gradient of a tfjs that has mended it', () => {
    undo();
    const stock = tf.getGradient(tf.Cumsum);
    let calls = 0;
    const mended: tf.GradConfig = {
      kernelName: tf.Cumsum,
      inputsToSave: ['x'],
      gradFunc: (dy, _, {axis, exclusive, reverse}) => {
        calls++;
        return {x: () => tf.cumsum(dy as tf.Tensor, axis as number, exclusive as boolean, !reverse)};
      },
    };
    tf.registerGradient(mended);
    const take = cumsumGradient();
    tf.dispose(tf.tidy(() => tf.grad((x) => tf.cumsum(x, 0))(tf.ones([2, 3]))));
    expect(calls).toBe(2); // once to try it, once to use it
    take();
    expect(tf.getGradient(tf.Cumsum)).toBe(mended);
    tf.registerGradient(stock);
  });
});
