/**
 * Products of pairs of features, what second-degree feature maps consist of:
 *
 *     pairProducts(x, y) = [x_i y_j, i < j, row-major]     [..,r], [..,r] -> [..,r(r-1)/2]
 *
 * It is linear in x and in y. The two kernels that give its gradients are each other's gradients too, so that all three
 * can be differentiated any number of times. r >= 2.
 */
import * as tf from '@tensorflow/tfjs-core';
import {arrayOp} from './array_kernel';

/** r(r-1)/2 */
export const pairCount = (r: number): number => (r * (r - 1)) / 2;

/** r from r(r-1)/2. */
const sizeOfPairs = (pairs: number): number => Math.round((1 + Math.sqrt(1 + 8 * pairs)) / 2);

const last = (shape: number[]): number => shape[shape.length - 1];
const withLast = (shape: number[], size: number): number[] => [...shape.slice(0, -1), size];

/** x_i y_j for i < j. */
export const pairProducts: (x: tf.Tensor, y: tf.Tensor) => tf.Tensor = arrayOp({
  kernelName: 'PairProducts',
  outputShape: ([x]) => withLast(x, pairCount(last(x))),
  fill: (output, [x, y], [shape]) => {
    const r = last(shape);
    let to = 0;
    for (let row = 0; row < x.length; row += r) {
      for (let i = 0; i < r; i++) {
        const xi = x[row + i];
        for (let j = i + 1; j < r; j++) output[to++] = xi * y[row + j];
      }
    }
  },
  composed: ([x, y]) => {
    const r = last(x.shape);
    const all = tf.mul(tf.reshape(x, [-1, r, 1]), tf.reshape(y, [-1, 1, r]));
    const picked = tf.gather(tf.reshape(all, [-1, r * r]), upperIndices(r), 1);
    return tf.reshape(picked, withLast(x.shape, pairCount(r)));
  },
  gradients: (dy, [x, y]) => [() => gatherFirst(dy, y), () => gatherSecond(dy, x)],
});

/** sum over j > i of g_ij y_j: [..,r(r-1)/2], [..,r] -> [..,r] */
const gatherFirst: (g: tf.Tensor, y: tf.Tensor) => tf.Tensor = arrayOp({
  kernelName: 'PairProductsFirst',
  outputShape: ([, y]) => y,
  fill: (output, [g, y], [, shape]) => {
    const r = last(shape);
    let from = 0;
    for (let row = 0; row < y.length; row += r) {
      for (let i = 0; i < r; i++) {
        let sum = 0;
        for (let j = i + 1; j < r; j++) sum += g[from++] * y[row + j];
        output[row + i] = sum;
      }
    }
  },
  composed: ([g, y]) => tf.reshape(tf.sum(tf.mul(matrixOf(g), tf.reshape(y, rowOf(y))), 2), y.shape),
  gradients: (dx, [g, y]) => [() => pairProducts(dx, y), () => gatherSecond(g, dx)],
});

/** sum over i < j of g_ij x_i: [..,r(r-1)/2], [..,r] -> [..,r] */
const gatherSecond: (g: tf.Tensor, x: tf.Tensor) => tf.Tensor = arrayOp({
  kernelName: 'PairProductsSecond',
  outputShape: ([, x]) => x,
  fill: (output, [g, x], [, shape]) => {
    const r = last(shape);
    output.fill(0);
    let from = 0;
    for (let row = 0; row < x.length; row += r) {
      for (let i = 0; i < r; i++) {
        const xi = x[row + i];
        for (let j = i + 1; j < r; j++) output[row + j] += g[from++] * xi;
      }
    }
  },
  composed: ([g, x]) => tf.reshape(tf.sum(tf.mul(matrixOf(g), tf.reshape(x, columnOf(x))), 1), x.shape),
  gradients: (dy, [g, x]) => [() => pairProducts(x, dy), () => gatherFirst(g, dy)],
});

const rowOf = ({shape}: tf.Tensor): number[] => [-1, 1, last(shape)];
const columnOf = ({shape}: tf.Tensor): number[] => [-1, last(shape), 1];

/** Where the pairs lie in a matrix [r,r]. */
function upperIndices(r: number): tf.Tensor1D {
  const indices = new Int32Array(pairCount(r));
  let to = 0;
  for (let i = 0; i < r; i++) {
    for (let j = i + 1; j < r; j++) indices[to++] = i * r + j;
  }
  return tf.tensor1d(indices, 'int32');
}

/** [..,r(r-1)/2] as matrices [rows,r,r] with zeros on and below the diagonal. */
function matrixOf(g: tf.Tensor): tf.Tensor {
  const pairs = last(g.shape);
  const r = sizeOfPairs(pairs);
  const indices = new Int32Array(r * r).fill(pairs); // the column of zeros
  let from = 0;
  for (let i = 0; i < r; i++) {
    for (let j = i + 1; j < r; j++) indices[i * r + j] = from++;
  }
  const flat = tf.reshape(g, [-1, pairs]) as tf.Tensor2D;
  const padded = tf.pad(flat, [
    [0, 0],
    [0, 1],
  ]);
  return tf.reshape(tf.gather(padded, tf.tensor1d(indices, 'int32'), 1), [-1, r, r]);
}
