import * as tf from '@tensorflow/tfjs-core';
import {einsumGradient, wasmTraining} from '../../src/patches';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {difference, FLOAT32} from '../helpers/compare';
import {centralDifferences} from '../helpers/finite_differences';
import {randomNumbers} from '../helpers/random_numbers';

const SIZES: {[label: string]: number} = {b: 2, h: 3, i: 2, j: 3, k: 4, l: 5, n: 3, r: 2, d: 4};
const shapeOf = (labels: string): number[] => [...labels].map((label) => SIZES[label]);
const size = (labels: string): number => tf.util.sizeFromShape(shapeOf(labels));

interface Equation {
  terms: string[];
  output: string;
}

function parse(equation: string): Equation {
  const [inputs, output] = equation.replace(/\s/g, '').split('->');
  return {terms: inputs.split(','), output};
}

/** The definition: a loop over every label. */
function reference({terms, output}: Equation, operands: ArrayLike<number>[]): Float64Array {
  const labels = [...new Set(terms.join(''))];
  const result = new Float64Array(size(output));
  const at: {[label: string]: number} = {};
  const index = (term: string) => [...term].reduce((sum, label) => sum * SIZES[label] + at[label], 0);
  const visit = (depth: number): void => {
    if (depth === labels.length) {
      result[index(output)] += terms.reduce((product, term, i) => product * operands[i][index(term)], 1);
      return;
    }
    for (at[labels[depth]] = 0; at[labels[depth]] < SIZES[labels[depth]]; at[labels[depth]]++) {
      visit(depth + 1);
    }
  };
  visit(0);
  return result;
}

/** Equations that tfjs 4.22 computes right. */
const RIGHT = [
  'ij->ij',
  'ij->ji',
  'bijk->kbji',
  'ij->i',
  'ij->j',
  'ij->',
  '->',
  'ij,jk->ik',
  'ij,jk->ki',
  'ij , jk -> ik',
  'ij,jk->i',
  'i,j->ij',
  'i,j->ji',
  'i,i->i',
  'i,i->',
  'ij,ij->',
  'ij,ji->',
  'ij,ij->ij',
  'ij,i->j',
  ',ij->ij',
  'ij,->i',
  ',->',
  'bij,bjk->bik',
  'bij,bjk->ik',
  'ijk,kl->ijl',
  'bhnr,bhnd->bhrd',
  'bnr,bhrd->bhnd',
  'bhnr,bhr->bhn',
  'bij,jk->bik',
];
/** Equations for which tfjs 4.22 itself gives wrong numbers, wrong shapes, or throws. */
const WRONG = [
  'ij,jk->',
  'ij,jk->k',
  'ij,jk->j',
  'ij,k->ik',
  'ij,k->i',
  'i,j->',
  'i,j->i',
  'i,j->j',
  'ij,kl->ik',
  'i,jk->ij',
];

function problem(equation: string) {
  const parsed = parse(equation);
  const operands = parsed.terms.map((term, i) => randomNumbers(size(term), i + 1));
  const tensors = () => operands.map((x, i) => tf.tensor(x, shapeOf(parsed.terms[i])));
  return {...parsed, operands, tensors, dy: randomNumbers(size(parsed.output), 9)};
}

describeOnBackends('patches.einsumGradient', () => {
  let undo: (() => void)[];
  beforeEach(() => {
    undo = [wasmTraining(), einsumGradient()];
  });
  afterEach(() => {
    for (const take of undo) take();
  });

  test.each([...RIGHT, ...WRONG])('%s: output and gradients equal the definition', (equation) => {
    const {terms, output, operands, tensors, dy} = problem(equation);
    const loss = (i: number) => (x: Float64Array) =>
      reference({terms, output}, Object.assign([...operands], {[i]: x})).reduce(
        (sum, y, n) => sum + y * dy[n],
        0,
      );
    tf.tidy(() => {
      const f = (...xs: tf.Tensor[]) => tf.einsum(equation, ...xs);
      const y = f(...tensors());
      expect(y.shape).toEqual(shapeOf(output));
      expect(difference(y.dataSync(), reference({terms, output}, operands), FLOAT32)).toBeNull();
      const gradients = tf.grads(f)(tensors(), tf.tensor(dy, shapeOf(output)));
      gradients.forEach((gradient, i) => {
        expect(gradient.shape).toEqual(shapeOf(terms[i]));
        expect(difference(gradient.dataSync(), centralDifferences(loss(i), operands[i]), FLOAT32)).toBeNull();
      });
    });
  });

  test('a repeated output label has the gradient of what tfjs returns for it', () => {
    tf.tidy(() => {
      const x = tf.tensor1d([1, 2]);
      expect(tf.einsum('i->ii', x).shape).toEqual([2]);
      expect(
        Array.from(
          tf
            .grad((x) => tf.einsum('i->ii', x))(x, tf.tensor1d([3, 5]))
            .dataSync(),
        ),
      ).toEqual([3, 5]);
    });
  });

  test.each(['ij,jk->ik', 'ij,ij->', 'ij->i', 'i,j->'])('%s can be differentiated twice', (equation) => {
    const {output, operands, tensors} = problem(equation);
    const {terms} = parse(equation);
    // The gradient of sum(y^2) is linear in dy = 2 y; compare the gradient of its square with differences.
    const inner = (x: ArrayLike<number>) => {
      const value = (at: Float64Array) =>
        reference({terms, output}, Object.assign([...operands], {0: at})).reduce((sum, y) => sum + y * y, 0);
      return centralDifferences(value, x, 1e-3).reduce((sum, g) => sum + g * g, 0);
    };
    tf.tidy(() => {
      const [x, ...rest] = tensors();
      const first = tf.grad((x) => tf.sum(tf.square(tf.einsum(equation, x, ...rest))));
      const second = tf.grad((x) => tf.sum(tf.square(first(x))))(x);
      expect(difference(second.dataSync(), centralDifferences(inner, operands[0], 1e-3), FLOAT32)).toBeNull();
    });
  });

  test('an equation that tfjs refuses is refused as before', () => {
    const x = tf.ones([2, 2]);
    for (const equation of ['ij', 'ii->', '...ij->ij', 'ij,jk,kl->il', 'ij->k']) {
      expect(() => tf.einsum(equation, ...equation.split(',').map(() => x))).toThrow();
    }
    x.dispose();
  });

  test('leaves nothing behind', async () => {
    const {tensors} = problem('bhnr,bhnd->bhrd');
    const inputs = tensors();
    await expectNoLeak(() => {
      tf.dispose(tf.einsum('bhnr,bhnd->bhrd', ...inputs));
      tf.dispose(tf.grads((...xs) => tf.sum(tf.einsum('bhnr,bhnd->bhrd', ...xs)))(inputs));
    });
    tf.dispose(inputs);
  });

  test('is idempotent, and undo restores the gradient and the kernels that were there', () => {
    undo[1]();
    const kernels = () => ['cpu', 'wasm'].map((backend) => tf.getKernel(tf.Einsum, backend));
    const before = kernels();
    expect(tf.getGradient(tf.Einsum)).toBeUndefined();
    const first = einsumGradient();
    const registered = tf.getGradient(tf.Einsum);
    expect(registered).toBeDefined();
    const second = einsumGradient();
    expect(tf.getGradient(tf.Einsum)).toBe(registered);
    second();
    expect(tf.getGradient(tf.Einsum)).toBeUndefined();
    expect(kernels().map((kernel, i) => kernel === before[i])).toEqual([true, true]);
    first();
    expect(tf.getGradient(tf.Einsum)).toBeUndefined();
  });

  test('steps aside where einsum has a gradient, and does not undo what others registered since', () => {
    undo[1]();
    const theirs: tf.GradConfig = {kernelName: tf.Einsum, gradFunc: () => ({})};
    tf.registerGradient(theirs);
    const undone = einsumGradient();
    expect(tf.getGradient(tf.Einsum)).toBe(theirs);
    undone();
    expect(tf.getGradient(tf.Einsum)).toBe(theirs);
    tf.unregisterGradient(tf.Einsum);
    const take = einsumGradient();
    tf.registerGradient(theirs);
    take();
    expect(tf.getGradient(tf.Einsum)).toBe(theirs);
    tf.unregisterGradient(tf.Einsum);
  });
});
