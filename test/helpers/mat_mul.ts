/** Matrix products in double precision, and the numbers they are made of. */
import * as tf from '@tensorflow/tfjs-core';
import {random} from '../../src/random';

/** Numbers in [-1, 1), the same for the same seed. */
export function uniform(size: number, seed: number): Float32Array {
  const stream = random(seed);
  return Float32Array.from({length: size}, () => 2 * stream.uniform() - 1);
}

export function product(
  a: Float32Array,
  b: Float32Array,
  M: number,
  N: number,
  K: number,
  transposeA: boolean,
  transposeB: boolean,
): Float64Array {
  const c = new Float64Array(M * N);
  for (let m = 0; m < M; m++) {
    for (let n = 0; n < N; n++) {
      for (let k = 0; k < K; k++) {
        c[m * N + n] += a[transposeA ? k * M + m : m * K + k] * b[transposeB ? n * K + k : k * N + n];
      }
    }
  }
  return c;
}

export function broadcastProduct(
  a: Float32Array,
  batchA: number[],
  b: Float32Array,
  batchB: number[],
  [M, N, K]: number[],
  transposeA: boolean,
  transposeB: boolean,
): {shape: number[]; want: number[]} {
  const shape = tf.broadcast_util.assertAndGetBroadcastShape(batchA, batchB);
  const want: number[] = [];
  const indexOf = (batch: number[], at: number[]) =>
    batch.reduce(
      (index, size, i) => index * size + (size === 1 ? 0 : at[shape.length - batch.length + i]),
      0,
    );
  for (let i = 0; i < tf.util.sizeFromShape(shape); i++) {
    const at = tf.util.indexToLoc(i, shape.length, tf.util.computeStrides(shape));
    const from = M * K * indexOf(batchA, at);
    const other = K * N * indexOf(batchB, at);
    const [left, right] = [a.subarray(from, from + M * K), b.subarray(other, other + K * N)];
    want.push(...product(left, right, M, N, K, transposeA, transposeB));
  }
  return {shape, want};
}
