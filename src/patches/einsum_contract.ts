/** Einsum of one or two tensors in stock differentiable ops, by matMul instead of a broadcast product. */
import * as tf from '@tensorflow/tfjs-core';

/** A tensor and the labels of its axes, one character each, all different. */
export interface Labelled {
  labels: string;
  x: tf.Tensor;
}

/** The labels of an equation's operands and of the tensor that tfjs returns for it. */
export interface Equation {
  terms: string[];
  output: string;
}

/**
 * Reads an equation that tfjs accepts; it refuses others itself. `output` is what tfjs returns, which for a repeated
 * label ('i->ii') is not what was written: it takes as many of the distinct labels, output first, as were written.
 */
export function parseEquation(equation: string): Equation {
  const [inputs, written] = equation.replace(/\s/g, '').split('->');
  const distinct = [...new Set(written + inputs.replace(/,/g, ''))].join('');
  return {terms: inputs.split(','), output: distinct.slice(0, written.length)};
}

const keep = (labels: string, test: (label: string) => boolean): string => [...labels].filter(test).join('');

/**
 * The product of the operands, summed over the labels that `output` lacks, axes in the order of `output`. Every label
 * of `output` must be in an operand. Differentiable to any order.
 */
export function contract(operands: Labelled[], output: string): tf.Tensor {
  return tf.tidy(() => {
    if (operands.length === 1) {
      return arrange(sumOut(operands[0], output), output);
    }
    const a = sumOut(operands[0], output + operands[1].labels);
    const b = sumOut(operands[1], output + a.labels);
    const shared = keep(a.labels, (label) => b.labels.includes(label));
    const summed = keep(shared, (label) => !output.includes(label));
    const batch = keep(shared, (label) => output.includes(label));
    const freeA = keep(a.labels, (label) => !shared.includes(label));
    const freeB = keep(b.labels, (label) => !shared.includes(label));
    const float = a.x.dtype === 'float32' && b.x.dtype === 'float32';
    if (!float || summed === '' || (freeA === '' && freeB === '')) {
      return multiplied(a, b, batch + freeA + freeB, summed, output);
    }
    const size = (of: Labelled, labels: string) => sizes(of, labels).reduce((m, n) => m * n, 1);
    const [rows, inner, columns] = [size(a, freeA), size(a, summed), size(b, freeB)];
    const left = tf.reshape(arrange(a, batch + freeA + summed), [size(a, batch), rows, inner]);
    const right = tf.reshape(arrange(b, batch + summed + freeB), [size(a, batch), inner, columns]);
    const product = inner === 0 ? tf.zeros([size(a, batch), rows, columns]) : tf.matMul(left, right);
    const shape = [...sizes(a, batch + freeA), ...sizes(b, freeB)];
    return arrange({labels: batch + freeA + freeB, x: tf.reshape(product, shape)}, output);
  });
}

/** The sizes of the axes called `labels`. */
const sizes = ({labels, x}: Labelled, wanted: string): number[] =>
  [...wanted].map((label) => x.shape[labels.indexOf(label)]);

/** The element-wise product over kept + summed, summed. */
function multiplied(a: Labelled, b: Labelled, kept: string, summed: string, output: string): tf.Tensor {
  const all = kept + summed;
  const wide = (of: Labelled) => {
    const own = keep(all, (label) => of.labels.includes(label));
    const shape = [...all].map((label) => (own.includes(label) ? sizes(of, label)[0] : 1));
    return tf.reshape(arrange(of, own), shape);
  };
  const product = {labels: all, x: tf.mul(wide(a), wide(b))};
  return arrange(sumOut(product, kept), output);
}

/** Sums over the axes whose label is not in `wanted`. */
function sumOut({labels, x}: Labelled, wanted: string): Labelled {
  const left = keep(labels, (label) => wanted.includes(label));
  if (left === labels) {
    return {labels, x};
  }
  const axes = [...labels].flatMap((label, axis) => (wanted.includes(label) ? [] : [axis]));
  return {labels: left, x: tf.sum(x, axes)};
}

/** The axes in the order of `wanted`, which has the same labels. Never the argument itself. */
function arrange({labels, x}: Labelled, wanted: string): tf.Tensor {
  return wanted === labels
    ? tf.clone(x)
    : tf.transpose(
        x,
        [...wanted].map((label) => labels.indexOf(label)),
      );
}
