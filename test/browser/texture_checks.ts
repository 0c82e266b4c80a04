/** What the suite of the webgl kernels asks of a page about textures that are too small. Everything returns plain data. */
import * as tf from '@tensorflow/tfjs-core';
import {
  asAttrs,
  asInputs,
  LinearAttention,
  type LinearAttentionAttrs,
  LinearAttentionGrad,
} from '../../src/linear_attention/spec';
import {difference, type Tolerance} from '../helpers/compare';
import {randomNumbers} from '../helpers/random_numbers';
import {gpuCounts} from './gpu_counts';
import type {Sizes} from './kernel_checks';

export interface CutSizes extends Sizes {
  /** Queries where they are not as many as keys. */
  Nq?: number;
  state?: boolean;
  /** Added to q, k and v. */
  shift?: number;
}

/** f with textures of at most `side` x `side` texels. */
export function withTextures<T>(side: number, f: () => T): T {
  const was = tf.env().getNumber('WEBGL_MAX_TEXTURE_SIZE');
  tf.env().set('WEBGL_MAX_TEXTURE_SIZE', side);
  try {
    return f();
  } finally {
    tf.env().set('WEBGL_MAX_TEXTURE_SIZE', was);
  }
}

type Results = {[name: string]: tf.Tensor};

/** Output, state and all gradients, by the kernels themselves: tfjs's tape would upload zeros where no gradient arrives. */
function resultsOf(
  x: tf.Tensor[],
  dy: tf.Tensor[],
  mask: tf.Tensor | null,
  sizes: CutSizes,
  train: boolean,
): Results {
  const {causal = true, dataFormat = 'BHND', state = false} = sizes;
  const attrs: LinearAttentionAttrs = {
    ...{updateRule: 'linear', causal, featureMap: 'elu', normalize: true, eps: 1e-6, scale: 1},
    ...{dataFormat, hasMask: mask !== null, hasState: state},
  };
  const none = tf.zeros([1]);
  const [q, k, v, s = none, z = none] = x;
  const inputs = {q, k, v, mask: mask ?? none, s, z};
  const run = (kernel: string, from: Parameters<typeof asInputs>[0]) =>
    tf.engine().runKernel(kernel, asInputs(from), asAttrs(attrs)) as tf.Tensor[];
  const [output, sOut, zOut, inverse] = run(LinearAttention, inputs);
  const results: Results = {output, s: sOut, z: zOut};
  if (train) {
    const [dOutput, dS, dZ] = dy;
    const gradients = run(LinearAttentionGrad, {...inputs, output, inverse, dOutput, dS, dZ});
    ['dq', 'dk', 'dv', 'ds', 'dz'].forEach((name, i) => {
      results[name] = gradients[i];
    });
  }
  return results;
}

/**
 * What differs between a call with textures of `side` x `side` texels and the same with the device's own; how often more
 * was drawn; and the tensors that it left behind. Inputs lie on the GPU beforehand.
 */
async function compareCut(side: number, sizes: CutSizes, tolerance: Tolerance, train: boolean) {
  const {B = 1, H = 2, N, Nq = N, r = 8, d = 8, dataFormat = 'BHND', masked = false, shift = 0} = sizes;
  const rows = (n: number, w: number) => (dataFormat === 'BHND' ? [B, H, n, w] : [B, n, H, w]);
  const states = [
    [B, H, r, d],
    [B, H, r],
  ];
  const made: tf.Tensor[] = [];
  const make = (shape: number[], seed: number, add = 0): tf.Tensor => {
    const x = tf.tensor(
      randomNumbers(tf.util.sizeFromShape(shape), seed).map((value) => value + add),
      shape,
    );
    made.push(x);
    // An op of packed textures brings it there.
    tf.dispose(tf.relu(x));
    return x;
  };
  const x = [make(rows(Nq, r), 1, shift), make(rows(N, r), 2, shift), make(rows(N, d), 3, shift)];
  const initial = sizes.state ? states.map((shape, i) => make(shape, 4 + i, i)) : [];
  const dy = [rows(Nq, d), ...states].map((shape, i) => make(shape, 6 + i));
  const mask = masked
    ? tf.tensor2d(
        randomNumbers(B * N, 9).map((value) => (value > -0.5 ? 1 : 0)),
        [B, N],
      )
    : null;
  const run = () => tf.tidy(() => resultsOf([...x, ...initial], dy, mask, sizes, train));
  const drawn = (f: () => Results): [Results, number] => {
    const before = gpuCounts.draws;
    const results = f();
    return [results, gpuCounts.draws - before];
  };
  const [want, whole] = drawn(run);
  const before = tf.memory();
  const [got, parts] = drawn(() => withTextures(side, run));
  const faults: string[] = [];
  for (const [name, tensor] of Object.entries(got)) {
    const [is, should] = [await tensor.data(), await want[name].data()] as Float32Array[];
    // Half floats hold no large sums, which is no matter of how a call is cut.
    const finite = [...should.keys()].filter((i) => Number.isFinite(should[i]));
    const only = (values: Float32Array) => finite.map((i) => values[i]);
    const fault = finite.length > 0 ? difference(only(is), only(should), tolerance) : null;
    if (fault !== null) faults.push(`${name}: ${fault}`);
  }
  tf.dispose(got);
  const after = tf.memory();
  tf.dispose([want, made, mask ?? []]);
  return {
    faults,
    moreDraws: parts / whole,
    left: [after.numTensors - before.numTensors, after.numDataBuffers - before.numDataBuffers],
  };
}

Object.assign(globalThis, {compareCut});
