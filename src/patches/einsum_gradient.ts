/** A gradient for tf.einsum, which tfjs lacks. */
import * as tf from '@tensorflow/tfjs-core';
import {asTensor} from '../tfjs';
import {contract, type Labelled, parseEquation} from './einsum_contract';
import {patch, replaceGradient, replaceKernel, together, type Undo} from './patch';

/**
 * Registers a gradient for `tf.einsum`, for every equation that tfjs accepts (one or two operands). Without it,
 * differentiating through einsum throws "Cannot compute gradient: gradient function not found for Einsum"
 * (tensorflow/tfjs issues 5690, 7722 and 8277). Differentiable to any order.
 *
 * tfjs 4.22's own einsum returns wrong values, or throws, when an operand lacks the first of the labels that are
 * summed ('ij,jk->k', 'ij,k->i', 'i,j->'; issue 8227), and returns the input itself for 'ij->ij'. A gradient of those would be of
 * no use, so while the patch is applied such equations are computed by matMul instead; all others run tfjs's kernel as
 * before.
 *
 * Does nothing when tfjs has a gradient for einsum already.
 *
 * ```js
 * const undo = patches.einsumGradient();
 * const a = tf.tensor2d([[1, 2], [3, 4]]);
 * tf.grad((x) => tf.sum(tf.einsum('ij,jk->ik', x, a)))(a).print();
 * undo();
 * ```
 *
 * @returns undo(), which restores what was registered before.
 */
export const einsumGradient: () => Undo = patch(() => {
  if (tf.getGradient(tf.Einsum) != null) {
    return () => {};
  }
  const kernels = ['cpu', 'webgl', 'webgpu'].flatMap((backend) => tf.getKernel(tf.Einsum, backend) ?? []);
  return together([
    replaceGradient(gradient),
    ...kernels.map((stock) =>
      replaceKernel({
        ...stock,
        kernelFunc: (args) =>
          isRightInTfjs(equationOf(args.attrs)) ? stock.kernelFunc(args) : einsumByContraction(args),
      }),
    ),
  ]);
});

const equationOf = (attrs?: tf.NamedAttrMap): string => String(attrs?.equation);

const gradient: tf.GradConfig = {
  kernelName: tf.Einsum,
  saveAllInputs: true,
  gradFunc: (dy, saved, attrs) => {
    const {terms, output} = parseEquation(equationOf(attrs));
    const dOutput: Labelled = {labels: output, x: dy as tf.Tensor};
    const operands = saved.map((x, i) => ({labels: terms[i], x}));
    return Object.fromEntries(
      operands.map((operand, i) => [i, () => operandGradient(operand, dOutput, operands[1 - i])]),
    );
  },
};

/**
 * The einsum of dOutput and the other operand onto this operand's labels. A label that neither has was summed out of
 * this operand alone: every position along it gets the same gradient.
 */
function operandGradient(operand: Labelled, dOutput: Labelled, other?: Labelled): tf.Tensor {
  const sources = other === undefined ? [dOutput] : [dOutput, floats(other)];
  const reached = (label: string) => sources.some(({labels}) => labels.includes(label));
  const {labels, x} = operand;
  const found = contract(sources, [...labels].filter(reached).join(''));
  const shape = [...labels].map((label, axis) => (reached(label) ? x.shape[axis] : 1));
  return tf.util.arraysEqual(shape, x.shape) ? found : tf.broadcastTo(tf.reshape(found, shape), x.shape);
}

const floats = ({labels, x}: Labelled): Labelled => ({
  labels,
  x: x.dtype === 'float32' ? x : tf.cast(x, 'float32'),
});

/**
 * Whether tfjs's own kernel gives the right result. It multiplies operands as the labels that are summed meet them,
 * and loses an operand that lacks the first; and where there is nothing to do ('ij->ij') it returns the input itself,
 * which then gets its gradient twice.
 */
function isRightInTfjs(equation: string): boolean {
  const {terms, output} = parseEquation(equation);
  if (terms.length === 1 && terms[0] === output) {
    return false;
  }
  const written = equation.replace(/\s/g, '').split('->')[1];
  const summed = [...terms.join('')].filter((label) => !output.includes(label));
  // A repeated output label is refused elsewhere; what tfjs makes of it is left as it is.
  const repeated = new Set(written).size !== written.length;
  const first = [...new Set(summed)][0];
  return repeated || first === undefined || terms.every((term) => term === '' || term.includes(first));
}

/** A kernel of Einsum for any backend. */
export const einsumByContraction: tf.KernelFunc = ({inputs, attrs, backend}) =>
  tf.tidy(() => {
    const tensors = Object.values(inputs as tf.NamedTensorInfoMap).map((x) =>
      asTensor(backend, x as tf.TensorInfo),
    );
    const equation = equationOf(attrs);
    // tfjs's own checks, with its messages.
    const {allDims, idDims} = tf.backend_util.decodeEinsumEquation(equation, tensors.length);
    tf.backend_util.checkEinsumDimSizes(allDims.length, idDims, tensors);
    const {terms, output} = parseEquation(equation);
    return contract(
      tensors.map((x, i) => ({labels: terms[i], x})),
      output,
    );
  });
