import * as tf from '@tensorflow/tfjs-core';
import {arrayOp} from './array_kernel';

interface Piece {
  axis: number;
  from: number;
  size: number;
}

const product = (list: number[]): number => list.reduce((a, b) => a * b, 1);

const run = arrayOp<Piece>({
  kernelName: 'SequencePiece',
  outputShape: ([x], {axis, size}) => x.map((n, i) => (i === axis ? size : n)),
  fill(output, [x], [shape], {axis, from, size}) {
    const width = product(shape.slice(axis + 1));
    const [whole, part] = [shape[axis] * width, size * width];
    for (let at = from * width, to = 0; to < output.length; at += whole, to += part) {
      output.set(x.subarray(at, at + part), to);
    }
  },
  composed: ([x], {axis, from, size}) =>
    tf.slice(
      x,
      x.shape.map((_, i) => (i === axis ? from : 0)),
      x.shape.map((n, i) => (i === axis ? size : n)),
    ),
  gradients: (dy, [x], {axis, from, size}) => [
    () =>
      tf.pad(
        dy,
        x.shape.map((n, i) => (i === axis ? [from, n - from - size] : [0, 0])),
      ),
  ],
});

/**
 * tf.slice along one axis. tfjs's wasm kernel copies the whole of x out of its memory first, whatever the size of the
 * piece: cutting a sequence into pieces with it takes time that grows with the square of the length.
 */
export const sequencePiece = (
  x: tf.Tensor,
  axis: number,
  [from, size]: readonly [number, number],
): tf.Tensor => run([x], {axis, from, size});
