/**
 * TensorFlow's operations on float32 tensors, called by name: some have no counterpart in tfjs, and the others cost half
 * as much without tfjs's checks, which shows where a kernel runs dozens of them. For use inside kernels, in a tidy: no
 * tape sees them.
 */
import * as tf from '@tensorflow/tfjs-core';
import {type PointwiseMap, pointwise, pointwiseGradient} from '../pointwise';
import {type Attribute, attributesOf, type NodeBackend, runOperation} from '../tfjs_node';

/** Values that tensors share without a copy, made when they are first used; never written. */
const triangles = new Map<string, Float32Array>();

/** [1,n,n] of 0 with 1 where column < row ('before'), column <= row ('upTo') or column > row ('after'). */
export function triangle(n: number, which: 'before' | 'upTo' | 'after'): tf.Tensor {
  const key = `${which} ${n}`;
  let values = triangles.get(key);
  if (values === undefined) {
    values = new Float32Array(n * n);
    for (let row = 0; row < n; row++) {
      const [from, to] = which === 'after' ? [row + 1, n] : [0, which === 'upTo' ? row + 1 : row];
      values.fill(1, row * n + from, row * n + to);
    }
    triangles.set(key, values);
  }
  return tf.tensor(values, [1, n, n]);
}

/**
 * Frees what made a result, and hands the result on: TensorFlow then writes the next one into memory that is still in the
 * cache, which saves a fifth of the time.
 */
export function freeing<T>(result: T, ...used: (tf.Tensor | undefined)[]): T {
  for (const x of used) {
    x?.dispose();
  }
  return result;
}

/** The operations, and constants that the calls of one kernel share. */
export class Operations {
  private readonly attributes: {[key: string]: Attribute[]};
  private readonly zero = tf.scalar(0);
  private readonly one = tf.scalar(1);

  constructor(private readonly backend: NodeBackend) {
    const index = {Tidx: 'TF_INT32'};
    const all = {
      float: {},
      sum: {keep_dims: true, ...index},
      shape: {Tshape: 'TF_INT32'},
      'cumsum false': {exclusive: true, reverse: false, ...index},
      'cumsum true': {exclusive: true, reverse: true, ...index},
      'matMul false false': {adj_x: false, adj_y: false},
      'matMul false true': {adj_x: false, adj_y: true},
      'matMul true false': {adj_x: true, adj_y: false},
    };
    this.attributes = Object.fromEntries(
      Object.entries(all).map(([key, values]) => [key, attributesOf(backend, {T: 'TF_FLOAT', ...values})]),
    );
  }

  private run(name: string, inputs: tf.Tensor[], key = 'float'): tf.Tensor {
    return runOperation(this.backend, name, inputs, this.attributes[key])[0];
  }

  /** Products of the matrices in the last two axes, either of them transposed; axes of 1 before are repeated. */
  matMul(a: tf.Tensor, b: tf.Tensor, transposeA = false, transposeB = false): tf.Tensor {
    return this.run('BatchMatMulV2', [a, b], `matMul ${transposeA} ${transposeB}`);
  }

  add(a: tf.Tensor, b: tf.Tensor): tf.Tensor {
    return this.run('AddV2', [a, b]);
  }

  mul(a: tf.Tensor, b: tf.Tensor): tf.Tensor {
    return this.run('Mul', [a, b]);
  }

  /** x where `keep` (1 or 0, repeated along axes of 1) is 1, else 0, whatever x holds there. */
  select(x: tf.Tensor, keep: tf.Tensor): tf.Tensor {
    return this.run('MulNoNan', [x, keep]);
  }

  /** x / y, and 0 where y is 0. */
  divideOrZero(x: tf.Tensor, y: tf.Tensor): tf.Tensor {
    return this.run('DivNoNan', [x, y]);
  }

  inverseOrZero(y: tf.Tensor): tf.Tensor {
    return this.divideOrZero(this.one, y);
  }

  /** The sum over one axis, which stays as an axis of 1. */
  sum(x: tf.Tensor, axis: number): tf.Tensor {
    const axes = tf.scalar(axis, 'int32');
    return freeing(this.run('Sum', [x, axes], 'sum'), axes);
  }

  /** Sums along axis 1 of the entries before each, or after each when reversed. */
  sumsBefore(x: tf.Tensor, reverse: boolean): tf.Tensor {
    const axis = tf.scalar(1, 'int32');
    return freeing(this.run('Cumsum', [x, axis], `cumsum ${reverse}`), axis);
  }

  /** The sum of the terms, which are freed; undefined where there are none. */
  sumOf(...terms: (tf.Tensor | undefined)[]): tf.Tensor | undefined {
    const present = terms.filter((x) => x !== undefined);
    const attributes = () => attributesOf(this.backend, {T: 'TF_FLOAT', N: present.length});
    return present.length < 2
      ? present[0]
      : freeing(runOperation(this.backend, 'AddN', present, attributes())[0], ...present);
  }

  /** The same values under another shape, without a copy. */
  reshape(x: tf.Tensor, shape: number[]): tf.Tensor {
    const wanted = tf.tensor1d(shape, 'int32');
    return freeing(this.run('Reshape', [x, wanted], 'shape'), wanted);
  }

  /** The entries along axis 1, without that axis. */
  unstack(x: tf.Tensor): tf.Tensor[] {
    const num = x.shape[1] as number;
    return runOperation(
      this.backend,
      'Unpack',
      [x],
      attributesOf(this.backend, {T: 'TF_FLOAT', axis: 1, num}),
      num,
    );
  }

  /** The inverse. */
  stack(parts: tf.Tensor[]): tf.Tensor {
    const attributes = attributesOf(this.backend, {T: 'TF_FLOAT', axis: 1, N: parts.length});
    return runOperation(this.backend, 'Pack', parts, attributes)[0];
  }

  /** phi(x), a new tensor. What exp gives for large x is not selected; the form with gradients must avoid it. */
  map(name: PointwiseMap, x: tf.Tensor): tf.Tensor {
    if (name === 'identity') {
      return tf.clone(x);
    }
    if (name !== 'elu') {
      return pointwise(name, x);
    }
    const parts = [this.run('Greater', [x, this.zero]), this.add(x, this.one), this.run('Exp', [x])];
    return freeing(this.run('Select', parts), ...parts);
  }

  /** dL/dx from dL/dphi, which is freed, x and phi(x). */
  mapGradient(name: PointwiseMap, dPhi: tf.Tensor, x: tf.Tensor, phi: tf.Tensor): tf.Tensor {
    if (name === 'identity') {
      return dPhi;
    }
    if (name !== 'elu') {
      return freeing(pointwiseGradient(name, dPhi, x, phi), dPhi);
    }
    const slope = this.run('Minimum', [phi, this.one]);
    return freeing(this.mul(dPhi, slope), slope, dPhi);
  }
}
