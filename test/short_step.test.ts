/** linearAttentionStep outside of tests, where its kernel is called without the engine's preparations. */
import * as tf from '@tensorflow/tfjs-core';
import {linearAttentionStep} from '../index';
import {LinearAttentionStep} from '../src/linear_attention/step';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {randomNumbers} from './helpers/random_numbers';

describeOnBackends('a step with IS_TEST off', (backend) => {
  beforeEach(() => tf.env().set('IS_TEST', false));
  afterEach(() => tf.env().set('IS_TEST', true));

  const inputs = () =>
    [
      [1, 2, 5],
      [1, 2, 5],
      [1, 2, 7],
      [1, 2, 5, 7],
      [1, 2, 5],
    ].map((shape, i) => tf.tensor(randomNumbers(tf.util.sizeFromShape(shape), i), shape));
  const step = ([q, k, v, s, z]: tf.Tensor[]) => {
    const next = linearAttentionStep(q, k, v, {s: s as tf.Tensor4D, z: z as tf.Tensor3D});
    return [next.output, next.state.s, next.state.z];
  };
  const valuesOf = (tensors: tf.Tensor[]) => tensors.map((x) => Array.from(x.dataSync()));

  test('gives the same bits as under the engine, and leaves its inputs as they were', async () => {
    await expectNoLeak(() => {
      const x = inputs();
      const before = valuesOf(x);
      const short = step(x);
      tf.env().set('IS_TEST', true);
      const long = step(x);
      expect(valuesOf(short)).toEqual(valuesOf(long));
      expect(short.map(({shape, dtype}) => [shape, dtype])).toEqual(
        long.map(({shape, dtype}) => [shape, dtype]),
      );
      expect(valuesOf(x)).toEqual(before);
      tf.dispose([x, short, long]);
    });
  });

  test('counts its tensors and bytes, and tidy disposes them', async () => {
    const x = inputs();
    await expectNoLeak(() => {
      const {numBytes, numDataBuffers} = tf.memory();
      tf.tidy(() => {
        step(x);
        expect(tf.memory().numBytes).toBe(numBytes + 4 * (14 + 70 + 10));
        expect(tf.memory().numDataBuffers).toBe(numDataBuffers + 3);
      });
      expect(tf.memory().numBytes).toBe(numBytes);
    });
    tf.dispose(x);
  });

  test('is profiled, and can be debugged', async () => {
    const x = inputs();
    const {kernels} = await tf.profile(() => tf.tidy(() => void step(x)));
    expect(kernels.map(({name, outputShapes}) => [name, outputShapes])).toContainEqual([
      LinearAttentionStep,
      [
        [1, 2, 7],
        [1, 2, 5, 7],
        [1, 2, 5],
      ],
    ]);
    const warned = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const logged = jest.spyOn(console, 'log').mockImplementation(() => undefined);
    tf.env().set('DEBUG', true);
    try {
      tf.tidy(() => void step(x));
      await new Promise((done) => setTimeout(done));
      expect(logged.mock.calls.flat().join()).toContain(LinearAttentionStep);
    } finally {
      tf.env().set('DEBUG', false);
      logged.mockRestore();
      warned.mockRestore();
    }
    tf.dispose(x);
  });

  test('has gradients', async () => {
    await expectNoLeak(() => {
      const x = inputs();
      const gradients = tf.grads((...y: tf.Tensor[]) => tf.sum(step(y)[0]))(x);
      const [q, k] = x;
      const moved = (x: tf.Tensor, by: number) => tf.add(x, by);
      const slope = tf.tidy(() => {
        const at = (by: number) => tf.sum(step([moved(q, by), k, ...x.slice(2)])[0]).dataSync()[0];
        return (at(1e-2) - at(-1e-2)) / 2e-2;
      });
      const total = tf.tidy(() => tf.sum(gradients[0]).dataSync()[0]);
      expect(Math.abs(total - slope)).toBeLessThan(1e-2 * Math.max(1, Math.abs(slope)));
      tf.dispose([x, gradients]);
    });
  });

  test('takes what is registered at the time: another kernel, or none', () => {
    const x = inputs();
    const want = step(x);
    const kernel = tf.getKernel(LinearAttentionStep, backend) as tf.KernelConfig;
    const kernelFunc = jest.fn(kernel.kernelFunc);
    tf.unregisterKernel(LinearAttentionStep, backend);
    const none = step(x);
    tf.registerKernel({...kernel, kernelFunc});
    const another = step(x);
    tf.unregisterKernel(LinearAttentionStep, backend);
    tf.registerKernel(kernel);
    expect(kernelFunc).toHaveBeenCalledTimes(1);
    expect(valuesOf(another)).toEqual(valuesOf(want));
    none.forEach((x, i) => {
      expect(difference(x.dataSync(), want[i].dataSync(), FLOAT32)).toBeNull();
    });
    tf.dispose([x, want, none, another]);
  });
});
