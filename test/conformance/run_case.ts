/**
 * Runs one case on the current backend and says what is wrong: output, final state and every gradient against the
 * float64 oracle, with gradients arriving at output and state together. No test framework and no Node here.
 */
import * as tf from '@tensorflow/tfjs-core';
import '../../kernels';
import {linearAttention} from '../../ops';
import {composedBackward, composedForward} from '../../src/linear_attention/composed';
import {backwardInHalves, forwardInHalves, type Kernels} from '../../src/linear_attention/halves';
import {naiveBackward, naiveForward} from '../../src/linear_attention/naive';
import {plainBackward, plainForward} from '../../src/linear_attention/plain';
import {dimsOf, type LinearAttentionAttrs} from '../../src/linear_attention/spec';
import {difference, FLOAT32, goldenDifference, type Tolerance} from '../helpers/compare';
import type {CaseValues, ConformanceCase} from './cases';
import {dqRounding} from './rounding';

export interface RunOptions {
  /**
   * The public op with the backend's kernels and tf.grads, the composed form called directly, the same cut in halves
   * until a third of the tokens of one head is left, or the plain-JavaScript kernel, which needs no backend and may stand behind
   * a faster one.
   */
  form?: 'op' | 'composed' | 'halves' | 'plain';
  tolerance?: Tolerance;
  /** Forward only, where gradients are refused. */
  outputsOnly?: boolean;
}

type Results = {[name: string]: Float32Array};

/** What is wrong, one line each; empty when the case passes. */
export async function runCase(testCase: ConformanceCase, options: RunOptions = {}): Promise<string[]> {
  const {form = 'op', tolerance = FLOAT32, outputsOnly = false} = options;
  const values = testCase.values();
  const failures: string[] = [];
  const got =
    form === 'plain'
      ? throughPlain(testCase, values)
      : await read(failures, () =>
          form === 'op'
            ? throughOp(testCase, values, outputsOnly)
            : throughKernels(
                form === 'halves'
                  ? cuttingTo(Math.ceil(Math.max(testCase.dims.Nq, testCase.dims.Nk) / 3))
                  : COMPOSED,
                testCase,
                values,
                outputsOnly,
              ),
        );
  const {expected} = testCase;
  if (expected !== undefined) {
    for (const [name, want] of Object.entries(expected)) {
      if (got[name] === undefined) {
        continue;
      }
      const kind = name.startsWith('d') ? 'gradient' : 'output';
      const fault =
        tolerance === FLOAT32
          ? goldenDifference(got[name], want, kind)
          : difference(got[name], want, tolerance);
      report(failures, name, fault);
    }
    return failures;
  }
  const want = oracle(testCase, values);
  for (const name of Object.keys(got)) {
    const cancels = name === 'dq' && testCase.dqCancels;
    const floor = cancels ? dqRounding(values, testCase.dims, testCase.attrs) : undefined;
    report(failures, name, difference(got[name], want[name], tolerance, floor));
  }
  return outputsOnly ? failures : [...failures, ...maskedGradients(testCase, values, got)];
}

/**
 * Runs a case, both forms' shapes, with NaN in every input and forgets the results: buffers that the backend recycles
 * afterwards hold NaN, and whoever reads what was not written will show it.
 */
export async function runPoisoned(testCase: ConformanceCase, options: RunOptions = {}): Promise<void> {
  const {form = 'op', outputsOnly = false} = options;
  const values = testCase.values();
  for (const name of ['q', 'k', 'v', 's', 'z', 'dOutput', 'dS', 'dZ'] as const) {
    values[name]?.fill(Number.NaN);
  }
  await read([], () =>
    form === 'op'
      ? throughOp(testCase, values, outputsOnly)
      : throughKernels(COMPOSED, testCase, values, outputsOnly),
  );
}

/** The values of the tensors that f returns, which must be all that it leaves behind. */
async function read(failures: string[], f: () => {[name: string]: tf.Tensor}): Promise<Results> {
  const before = tf.memory().numTensors;
  const results: Results = {};
  for (const [name, tensor] of Object.entries(f())) {
    results[name] = (await tensor.data()) as Float32Array;
    tensor.dispose();
  }
  const leaked = tf.memory().numTensors - before;
  if (leaked !== 0) {
    failures.push(`${leaked} tensors leaked`);
  }
  return results;
}

function report(failures: string[], name: string, fault: string | null): void {
  if (fault !== null) {
    failures.push(`${name}: ${fault}`);
  }
}

type Reference = {[name: string]: Float64Array};

const references = new WeakMap<ConformanceCase, Reference>();

/** The oracle's numbers by the names that the results have. A case's values are always the same. */
function oracle(testCase: ConformanceCase, values: CaseValues): Reference {
  const {dims, attrs} = testCase;
  const known = references.get(testCase);
  const reference = known ?? {
    ...naiveForward(values, dims, attrs),
    ...naiveBackward(values, dims, attrs, values),
  };
  references.set(testCase, reference);
  return reference;
}

interface Inputs {
  q: tf.Tensor;
  k: tf.Tensor;
  v: tf.Tensor;
  mask?: tf.Tensor;
  s?: tf.Tensor;
  z?: tf.Tensor;
  dOutput: tf.Tensor;
  dS: tf.Tensor;
  dZ: tf.Tensor;
}

/** The case's values as tensors, to be called inside a tidy. */
function tensorsOf({dims, attrs, inputsAre}: ConformanceCase, values: CaseValues): Inputs {
  const {B, H, Nq, Nk, r, d} = dims;
  const rows = (N: number, width: number) =>
    attrs.dataFormat === 'BHND' ? [B, H, N, width] : [B, N, H, width];
  const make = (data: Float32Array, shape: number[]): tf.Tensor => {
    const x = tf.tensor(data, shape);
    if (inputsAre === 'slices') {
      const around: [number, number][] = shape.map((_, axis) => [axis, 2]);
      return tf.slice(tf.pad(x, around, 99), [0, 1, 2, 3], shape);
    }
    return inputsAre === 'transposes' ? tf.transpose(tf.transpose(x, [3, 1, 0, 2]), [2, 1, 3, 0]) : x;
  };
  return {
    q: make(values.q, rows(Nq, r)),
    k: make(values.k, rows(Nk, r)),
    v: make(values.v, rows(Nk, d)),
    mask: values.mask && tf.tensor(values.mask, [B, Nk]),
    s: values.s && tf.tensor(values.s, [B, H, r, d]),
    z: values.z && tf.tensor(values.z, [B, H, r]),
    dOutput: tf.tensor(values.dOutput, rows(Nq, d)),
    dS: tf.tensor(values.dS, [B, H, r, d]),
    dZ: tf.tensor(values.dZ, [B, H, r]),
  };
}

function throughOp(
  testCase: ConformanceCase,
  values: CaseValues,
  outputsOnly: boolean,
): {[name: string]: tf.Tensor} {
  const {attrs} = testCase;
  return tf.tidy(() => {
    const x = tensorsOf(testCase, values);
    const run = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor, s?: tf.Tensor, z?: tf.Tensor) =>
      linearAttention(q, k, v, {
        ...attrs,
        ...(x.mask === undefined ? {} : {mask: x.mask}),
        ...(s === undefined || z === undefined ? {} : {initialState: {s, z}}),
        returnState: true,
      });
    const loss = (...inputs: tf.Tensor[]) =>
      tf.tidy(() => {
        const [q, k, v, s, z] = inputs;
        const {output, state} = run(q, k, v, s, z);
        // tf.sum of an empty tensor fails on webgl.
        const atOutput = output.size > 0 ? tf.sum(tf.mul(output, x.dOutput)) : tf.scalar(0);
        return tf.add(
          atOutput,
          tf.add(tf.sum(tf.mul(state.s, x.dS)), tf.sum(tf.mul(state.z, x.dZ))),
        ) as tf.Scalar;
      });
    const differentiated = [x.q, x.k, x.v, ...(x.s && x.z ? [x.s, x.z] : [])];
    const gradients = outputsOnly ? [] : tf.grads(loss)(differentiated);
    const {output, state} = run(x.q, x.k, x.v, x.s, x.z);
    const names = ['dq', 'dk', 'dv', 'ds', 'dz'];
    return {
      output,
      s: state.s as tf.Tensor,
      z: state.z as tf.Tensor,
      ...Object.fromEntries(gradients.map((gradient, i) => [names[i], gradient])),
    };
  });
}

const COMPOSED: Kernels = {
  forward: (inputs, attrs) => composedForward(inputs, attrs),
  backward: (inputs, attrs) => composedBackward(inputs, inputs, attrs, inputs),
};

/** Every call is cut until no more than so many tokens of one head are left. */
function cuttingTo(tokens: number): Kernels {
  const isShort = (inputs: Parameters<Kernels['forward']>[0], attrs: LinearAttentionAttrs): boolean => {
    const {B, H, Nq, Nk} = dimsOf(inputs, attrs.dataFormat);
    return Nq * Nk === 0 || (B * H === 1 && Math.max(Nq, Nk) <= tokens);
  };
  const kernels: Kernels = {
    forward: (inputs, attrs) =>
      isShort(inputs, attrs) ? COMPOSED.forward(inputs, attrs) : forwardInHalves(inputs, attrs, kernels),
    backward: (inputs, attrs) =>
      isShort(inputs, attrs) ? COMPOSED.backward(inputs, attrs) : backwardInHalves(inputs, attrs, kernels),
  };
  return kernels;
}

function throughKernels(
  kernels: Kernels,
  testCase: ConformanceCase,
  values: CaseValues,
  outputsOnly: boolean,
): {[name: string]: tf.Tensor} {
  return tf.tidy(() => {
    const x = tensorsOf(testCase, values);
    const attrs: LinearAttentionAttrs = {
      ...testCase.attrs,
      updateRule: 'linear',
      hasMask: x.mask !== undefined,
      hasState: x.s !== undefined,
    };
    const placeholder = tf.zeros([1]);
    const inputs = {...x, mask: x.mask ?? placeholder, s: x.s ?? placeholder, z: x.z ?? placeholder};
    const [output, s, z, inverse] = kernels.forward(inputs, attrs);
    if (outputsOnly) {
      return {output, s, z};
    }
    const [dq, dk, dv, ds, dz] = kernels.backward({...inputs, output, inverse}, attrs);
    return {output, s, z, dq, dk, dv, ...(attrs.hasState ? {ds, dz} : {})};
  });
}

function throughPlain({dims, attrs: naiveAttrs}: ConformanceCase, values: CaseValues): Results {
  const attrs: LinearAttentionAttrs = {
    ...naiveAttrs,
    updateRule: 'linear',
    hasMask: values.mask !== undefined,
    hasState: values.s !== undefined,
  };
  const none = new Float32Array(1);
  const inputs = {...values, mask: values.mask ?? none, s: values.s ?? none, z: values.z ?? none};
  const {output, s, z, inverse} = plainForward(inputs, dims, attrs);
  const {dq, dk, dv, ds, dz} = plainBackward(inputs, {output, inverse}, values, dims, attrs);
  return {output, s, z, dq, dk, dv, ...(attrs.hasState ? {ds, dz} : {})};
}

/** Gradients at masked keys and values must be exactly 0. */
function maskedGradients({dims, attrs}: ConformanceCase, {mask}: CaseValues, got: Results): string[] {
  const {B, H, Nk, r, d} = dims;
  const failures: string[] = [];
  for (const [name, width] of [
    ['dk', r],
    ['dv', d],
  ] as const) {
    for (let i = 0; mask !== undefined && i < B * H * Nk; i++) {
      const [b, n] =
        attrs.dataFormat === 'BHND'
          ? [Math.floor(i / (H * Nk)), i % Nk]
          : [Math.floor(i / (H * Nk)), Math.floor(i / H) % Nk];
      if (mask[b * Nk + n] === 0 && got[name].subarray(i * width, (i + 1) * width).some((g) => g !== 0)) {
        failures.push(`${name}: expected exactly 0 at the masked token ${n} of batch row ${b}`);
      }
    }
  }
  return failures;
}
