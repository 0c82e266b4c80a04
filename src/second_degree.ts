/**
 * Features of second degree of rows x [..,r]:
 *
 *     [constant?, linear x_i?, squares x_i^2, pairs x_i x_j (i < j, row-major)]
 *
 * Three kernels, which are each other's gradients, so that all can be differentiated any number of times:
 *
 *     features(x)       as above
 *     tangent(x, t)     their derivative along t
 *     pullback(g, x)    the gradient of features(x).g, [..,r]
 */
import * as tf from '@tensorflow/tfjs-core';
import {addAll} from './add_all';
import {arrayOp} from './array_kernel';

/** Factors of the terms. */
export interface Terms {
  /** A first feature that is this number; absent where 0. */
  constant: number;
  /** Features linear * x_i; absent where 0. */
  linear: number;
  squares: number;
  pairs: number;
}

interface Attrs extends Terms {
  /** The linear term's derivative counts as 0: what remains of it after differentiating twice. */
  curved?: boolean;
}

const last = (shape: number[]): number => shape[shape.length - 1];

/** Where each kind of feature starts, and how many there are in all. */
function layout({constant, linear}: Terms, r: number) {
  const lines = constant === 0 ? 0 : 1;
  const squares = lines + (linear === 0 ? 0 : r);
  const pairs = squares + r;
  return {lines, squares, pairs, all: pairs + (r * (r - 1)) / 2};
}

/** Number of features of r numbers. */
export const secondDegreeCount = (terms: Terms, r: number): number => layout(terms, r).all;

const features = arrayOp<Attrs>({
  kernelName: 'SecondDegree',
  outputShape: ([x], attrs) => [...x.slice(0, -1), layout(attrs, last(x)).all],
  fill(output, [x], [shape], attrs) {
    const r = last(shape);
    const {constant, linear, squares, pairs} = attrs;
    let to = 0;
    for (let row = 0; row < x.length; row += r) {
      if (constant !== 0) output[to++] = constant;
      if (linear !== 0) for (let i = 0; i < r; i++) output[to++] = linear * x[row + i];
      // Products rounded before the factor, as stock ops do, so that every backend has the same features.
      for (let i = 0; i < r; i++) output[to++] = squares * Math.fround(x[row + i] * x[row + i]);
      for (let i = 0; i < r; i++) {
        const xi = x[row + i];
        for (let j = i + 1; j < r; j++) output[to++] = pairs * Math.fround(xi * x[row + j]);
      }
    }
  },
  composed: ([x], attrs) => {
    const r = last(x.shape);
    const rows = tf.reshape(x, [-1, r]);
    return assembled(attrs, x.shape, {
      constant: tf.fill([rows.shape[0], 1], attrs.constant),
      linear: rows,
      squares: tf.mul(rows, rows),
      pairs: upper(rows, rows),
    });
  },
  gradients: (dy, [x], attrs) => [() => pullback([dy, x], attrs)],
});

const tangent: (inputs: tf.Tensor[], attrs: Attrs) => tf.Tensor = arrayOp<Attrs>({
  kernelName: 'SecondDegreeTangent',
  outputShape: ([x], attrs) => [...x.slice(0, -1), layout(attrs, last(x)).all],
  fill(output, [x, t], [shape], attrs) {
    const r = last(shape);
    const {constant, squares, pairs} = attrs;
    const linear = attrs.curved ? 0 : attrs.linear;
    let to = 0;
    for (let row = 0; row < x.length; row += r) {
      if (constant !== 0) output[to++] = 0;
      if (attrs.linear !== 0) for (let i = 0; i < r; i++) output[to++] = linear * t[row + i];
      for (let i = 0; i < r; i++) output[to++] = 2 * squares * x[row + i] * t[row + i];
      for (let i = 0; i < r; i++) {
        const [xi, ti] = [pairs * x[row + i], pairs * t[row + i]];
        for (let j = i + 1; j < r; j++) output[to++] = xi * t[row + j] + ti * x[row + j];
      }
    }
  },
  composed: ([x, t], attrs) => {
    const [xs, ts] = [x, t].map((y) => tf.reshape(y, [-1, last(y.shape)]));
    return assembled(attrs, x.shape, {
      constant: tf.zeros([xs.shape[0], 1]),
      linear: attrs.curved ? tf.zerosLike(ts) : ts,
      squares: tf.mul(tf.mul(xs, ts), 2),
      pairs: tf.add(upper(xs, ts), upper(ts, xs)),
    });
  },
  gradients: (dy, [x, t], attrs) => [
    () => pullback([dy, t], {...attrs, curved: true}),
    () => pullback([dy, x], attrs),
  ],
});

const pullback: (inputs: tf.Tensor[], attrs: Attrs) => tf.Tensor = arrayOp<Attrs>({
  kernelName: 'SecondDegreePullback',
  outputShape: ([, x]) => x,
  fill(output, [g, x], [, shape], attrs) {
    const r = last(shape);
    const {lines, squares: atSquares, pairs: atPairs, all} = layout(attrs, r);
    const {squares, pairs} = attrs;
    const linear = attrs.curved ? 0 : attrs.linear;
    const sums = new Float64Array(r); // of terms that may cancel
    for (let row = 0, at = 0; row < x.length; row += r, at += all) {
      for (let i = 0; i < r; i++) {
        sums[i] = 2 * squares * x[row + i] * g[at + atSquares + i];
        if (linear !== 0) sums[i] += linear * g[at + lines + i];
      }
      let from = at + atPairs;
      for (let i = 0; i < r; i++) {
        const xi = pairs * x[row + i];
        let sum = 0;
        for (let j = i + 1; j < r; j++, from++) {
          sum += g[from] * x[row + j];
          sums[j] += g[from] * xi;
        }
        output[row + i] = sums[i] + pairs * sum;
      }
    }
  },
  composed: ([g, x], attrs) => {
    const r = last(x.shape);
    const rows = tf.reshape(x, [-1, r]);
    const {lines, squares, pairs, all} = layout(attrs, r);
    const flat = tf.reshape(g, [-1, all]);
    const part = (from: number, size: number) => tf.slice(flat, [0, from], [-1, size]);
    const terms = [tf.mul(tf.mul(rows, part(squares, r)), 2 * attrs.squares)];
    if (attrs.linear !== 0 && !attrs.curved) {
      terms.push(tf.mul(part(lines, r), attrs.linear));
    }
    if (r > 1) {
      const symmetric = symmetricOf(part(pairs, all - pairs), r);
      terms.push(tf.mul(tf.sum(tf.mul(symmetric, tf.reshape(rows, [-1, 1, r])), 2), attrs.pairs));
    }
    return tf.reshape(addAll(terms), x.shape);
  },
  gradients: (dx, [g, x], attrs) => [
    () => tangent([x, dx], attrs),
    () => pullback([g, dx], {...attrs, curved: true}),
  ],
});

/** Features of second degree of x [..,r]. */
export const secondDegree = (x: tf.Tensor, terms: Terms): tf.Tensor => features([x], terms);

/** The kinds of features side by side, each times its factor: [..,all]. */
function assembled(
  {constant, linear, squares, pairs}: Terms,
  shape: number[],
  parts: {constant: tf.Tensor; linear: tf.Tensor; squares: tf.Tensor; pairs: tf.Tensor | null},
): tf.Tensor {
  const list = [
    ...(constant === 0 ? [] : [parts.constant]),
    ...(linear === 0 ? [] : [tf.mul(parts.linear, linear)]),
    tf.mul(parts.squares, squares),
    ...(parts.pairs === null || last(shape) === 1 ? [] : [tf.mul(parts.pairs, pairs)]),
  ];
  return tf.reshape(tf.concat(list, 1), [...shape.slice(0, -1), -1]);
}

/** x_i y_j for i < j of rows [n,r]. With r = 1 there is none, and what comes back is not used. */
function upper(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
  const r = last(x.shape);
  if (r === 1) {
    return x;
  }
  const all = tf.reshape(tf.mul(tf.reshape(x, [-1, r, 1]), tf.reshape(y, [-1, 1, r])), [-1, r * r]);
  const indices: number[] = [];
  for (let i = 0; i < r; i++) {
    for (let j = i + 1; j < r; j++) indices.push(i * r + j);
  }
  return tf.gather(all, tf.tensor1d(indices, 'int32'), 1);
}

/** [n,r(r-1)/2] as symmetric matrices [n,r,r] with zeros on the diagonal. */
function symmetricOf(pairs: tf.Tensor, r: number): tf.Tensor {
  const indices = new Int32Array(r * r).fill(pairs.shape[1] as number); // a column of zeros
  let from = 0;
  for (let i = 0; i < r; i++) {
    for (let j = i + 1; j < r; j++) indices[i * r + j] = indices[j * r + i] = from++;
  }
  const padded = tf.pad(pairs as tf.Tensor2D, [
    [0, 0],
    [0, 1],
  ]);
  return tf.reshape(tf.gather(padded, tf.tensor1d(indices, 'int32'), 1), [-1, r, r]);
}
