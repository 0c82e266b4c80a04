/** The SIMD kernels of a training step at awkward sizes, against double precision and the plain JS forms. */
import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {rotary} from '../ops/rotary';
import {layerNormGradRows, layerNormRows} from '../src/layer_norm/plain';
import {layerNorm} from '../src/layer_norm/run';
import {random} from '../src/random';
import {disableSimd} from '../src/wasm/instance';
import {describeOnBackends} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';

function uniform(size: number, seed: number): Float32Array {
  const stream = random(seed);
  return Float32Array.from({length: size}, () => 2 * stream.uniform() - 1);
}

describeOnBackends('kernels of a training step', (backend) => {
  test.each([
    [1, 1],
    [3, 2],
    [5, 3],
    [70, 4],
    [2, 7],
    [65, 8],
    [129, 12],
    [3, 130],
  ])('layer normalization of %d rows of %d numbers is that of double precision', (rows, D) => {
    const [x, gamma, beta, dy] = [rows * D, D, D, rows * D].map((size, i) => uniform(size, i + 1));
    const y = new Float32Array(rows * D);
    layerNormRows(x, gamma, beta, 1e-3, y);
    const wanted = [x, gamma, gamma].map(({length}) => new Float32Array(length));
    layerNormGradRows(x, gamma, dy, 1e-3, wanted[0], wanted[1], wanted[2]);
    const run = (a: tf.Tensor, b: tf.Tensor, c: tf.Tensor) => layerNorm(a, b, c, 1e-3);
    const tensors = [tf.tensor2d(x, [rows, D]), tf.tensor1d(gamma), tf.tensor1d(beta)];
    const got = tf.tidy(() => {
      const gradients = tf.grads(run)(tensors, tf.tensor2d(dy, [rows, D]));
      return [run(tensors[0], tensors[1], tensors[2]), ...gradients].map((t) => t.dataSync());
    });
    const differences = [y, ...wanted].map((want, i) => difference(got[i], want, FLOAT32));
    expect(differences).toEqual([null, null, null, null]);
    tf.dispose(tensors);
  });

  if (backend === 'wasm') {
    test.each([2, 4, 6, 8, 10, 16, 18])('rotary of %d features is the same with and without SIMD', (r) => {
      for (const pairing of ['half', 'interleaved'] as const) {
        for (const dataFormat of ['BHND', 'BNHD'] as const) {
          const turn = () =>
            tf.tidy(() => {
              const x = tf.tensor4d(uniform(2 * 3 * 5 * r, r), [2, 3, 5, r]);
              const run = (t: tf.Tensor) => rotary(t, {pairing, dataFormat, offset: 7});
              return [run(x), tf.grad((t) => tf.sum(tf.mul(run(t), run(x))))(x)].map((t) => t.dataSync());
            });
          const simd = turn();
          disableSimd(true);
          const plain = turn();
          disableSimd(false);
          expect(simd.map((values, i) => difference(values, plain[i], {rms: 1e-7, max: 3e-7}))).toEqual([
            null,
            null,
          ]);
        }
      }
    });
  }
});
