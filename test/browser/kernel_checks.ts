/** What the suites of the webgl and webgpu kernels ask of a page. Everything returns plain data. */
import * as tf from '@tensorflow/tfjs-core';
import '../../kernels';
import {linearAttention, linearAttentionStep, linearAttentionStepInPlace, zeroState} from '../../ops';
import {plainForward} from '../../src/linear_attention/plain';
import type {DataFormat, LinearAttentionAttrs} from '../../src/linear_attention/spec';
import {forceSegmentLength} from '../../src/linear_attention/webgpu/plan';
import {random} from '../../src/random';
import {difference, type Tolerance} from '../helpers/compare';
import {counted, gpuCounts} from './gpu_counts';
import {withTextures} from './texture_checks';

export interface Sizes {
  B?: number;
  H?: number;
  N: number;
  r?: number;
  d?: number;
  causal?: boolean;
  dataFormat?: DataFormat;
  masked?: boolean;
}

/** Normal numbers with this mean and deviation. */
export interface Spread {
  mean?: number;
  deviation?: number;
  /** Multiplies v. */
  values?: number;
}

interface Inputs {
  q: tf.Tensor4D;
  k: tf.Tensor4D;
  v: tf.Tensor4D;
}

function numbers(n: number, seed: number, mean = 0, deviation = 1): Float32Array {
  const generator = random(seed);
  return Float32Array.from({length: n}, () => {
    let sum = -3;
    for (let i = 0; i < 6; i++) {
      sum += generator.uniform();
    }
    return mean + sum * Math.SQRT2 * deviation;
  });
}

function shapesOf({B = 1, H = 2, N, r = 8, d = 8, dataFormat = 'BHND'}: Sizes) {
  const shape = (width: number): [number, number, number, number] =>
    dataFormat === 'BHND' ? [B, H, N, width] : [B, N, H, width];
  return {q: shape(r), k: shape(r), v: shape(d)};
}

function arraysOf(sizes: Sizes, spread: Spread = {}) {
  const {mean = 0, deviation = 1, values = 1} = spread;
  const {q, k, v} = shapesOf(sizes);
  const size = tf.util.sizeFromShape;
  return {
    q: numbers(size(q), 1, mean, deviation),
    k: numbers(size(k), 2, mean, deviation),
    v: numbers(size(v), 3, mean * values, deviation * values),
  };
}

function tensorsOf(sizes: Sizes, arrays = arraysOf(sizes)): Inputs {
  const shapes = shapesOf(sizes);
  return {
    q: tf.tensor4d(arrays.q, shapes.q),
    k: tf.tensor4d(arrays.k, shapes.k),
    v: tf.tensor4d(arrays.v, shapes.v),
  };
}

/** The gradients of q, k and v at a gradient of ones that is already on the GPU, and nothing else of tfjs's. */
function run(x: Inputs, sizes: Sizes, dy: tf.Tensor | null): tf.Tensor[] {
  const {causal = true, dataFormat = 'BHND', masked = false, B = 1, N} = sizes;
  const mask = masked ? {mask: tf.tensor2d(numbers(B * N, 4), [B, N])} : {};
  const f = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) =>
    linearAttention(q, k, v, {causal, dataFormat, ...mask});
  if (dy === null) {
    return [f(x.q, x.k, x.v)];
  }
  const {value, grads} = tf.valueAndGrads(f as (...args: tf.Tensor[]) => tf.Tensor)([x.q, x.k, x.v], dy);
  return [value, ...grads];
}

/** Draws and compiles of a call on tensors that lie on the GPU, packed, after `warmUp` calls of the same. */
function countCall(sizes: Sizes, backward: boolean, warmUp = 1): {draws: number; compiles: number} {
  return tf.tidy(() => {
    const x = tensorsOf(sizes);
    const dy = backward ? tf.ones(shapesOf(sizes).v) : null;
    // Uploading and packing are not the kernel's.
    tf.tidy(() => [...Object.values(x), ...(dy ? [dy] : [])].map((t) => tf.relu(t)));
    let counts = {draws: 0, compiles: 0};
    for (let i = 0; i <= warmUp; i++) {
      counts = counted(() => tf.tidy(() => void run(x, sizes, dy)));
    }
    return counts;
  });
}

/** Programs compiled by a call of each of these sizes, one after the other. */
function compilesFor(all: Sizes[], backward: boolean): number[] {
  return all.map((sizes) => {
    const x = tensorsOf(sizes);
    const dy = backward ? tf.ones(shapesOf(sizes).v) : null;
    tf.tidy(() => [...Object.values(x), ...(dy ? [dy] : [])].map((t) => tf.relu(t)));
    const {compiles} = counted(() => tf.tidy(() => void run(x, sizes, dy)));
    tf.dispose([x.q, x.k, x.v]);
    dy?.dispose();
    return compiles;
  });
}

/** Output against plain JavaScript in double precision; what is wrong, or null. Linear in N, unlike the oracle. */
async function compareWithPlain(
  sizes: Sizes,
  spread: Spread,
  tolerance: Tolerance,
): Promise<{fault: string | null; nonFinite: number}> {
  const {B = 1, H = 2, N, r = 8, d = 8, causal = true, dataFormat = 'BHND'} = sizes;
  const arrays = arraysOf(sizes, spread);
  const attrs: LinearAttentionAttrs = {
    ...{updateRule: 'linear', causal, featureMap: 'elu', normalize: true, eps: 1e-6, scale: 1},
    ...{dataFormat, hasMask: false, hasState: false},
  };
  const none = new Float32Array(1);
  const dims = {B, H, Nq: N, Nk: N, r, d};
  const want = plainForward({...arrays, mask: none, s: none, z: none}, dims, attrs).output;
  const output = tf.tidy(() => run(tensorsOf(sizes, arrays), sizes, null)[0]);
  const got = (await output.data()) as Float32Array;
  output.dispose();
  return {
    fault: difference(got, want, tolerance),
    nonFinite: got.filter((x) => !Number.isFinite(x)).length,
  };
}

const bits = (x: Float32Array): string => {
  // FNV-1a over the bits.
  let hash = 2166136261;
  for (const word of new Uint32Array(x.buffer, x.byteOffset, x.length)) {
    hash = Math.imul(hash ^ word, 16777619);
  }
  return `${x.length}:${hash >>> 0}`;
};

/** How many different results `times` runs of the same call gave, forward and (with `backward`) gradients together. */
async function differentResults(sizes: Sizes, times: number, backward = true): Promise<number> {
  const x = tensorsOf(sizes);
  const dy = backward
    ? tf.tensor(numbers(tf.util.sizeFromShape(shapesOf(sizes).v), 5), shapesOf(sizes).v)
    : null;
  const seen = new Set<string>();
  for (let i = 0; i < times; i++) {
    const results = tf.tidy(() => run(x, sizes, dy));
    const words = [];
    for (const result of results) {
      words.push(bits((await result.data()) as Float32Array));
    }
    seen.add(words.join(' '));
    tf.dispose(results);
    // Between runs the pool of textures changes.
    tf.dispose(tf.relu(tf.fill([3 + i, 7], Number.NaN)));
  }
  tf.dispose([x.q, x.k, x.v]);
  dy?.dispose();
  return seen.size;
}

/** Of outputs before token `at`, how many bits changed when q, k and v from `at` on were replaced by `value`. */
async function changedBefore(sizes: Sizes, at: number, value: number): Promise<number> {
  const arrays = arraysOf(sizes);
  const output = async () => {
    const y = tf.tidy(() => run(tensorsOf(sizes, arrays), sizes, null)[0]);
    const data = (await y.data()) as Float32Array;
    y.dispose();
    return new Uint32Array(Float32Array.from(data).buffer);
  };
  const before = await output();
  const {H = 2, N, r = 8, d = 8} = sizes;
  for (let h = 0; h < H; h++) {
    arrays.q.fill(value, (h * N + at) * r, (h + 1) * N * r);
    arrays.k.fill(value, (h * N + at) * r, (h + 1) * N * r);
    arrays.v.fill(value, (h * N + at) * d, (h + 1) * N * d);
  }
  const after = await output();
  let changed = 0;
  before.forEach((word, i) => {
    const token = Math.floor(i / d) % N;
    changed += token < at && word !== after[i] ? 1 : 0;
  });
  return changed;
}

/** The message of the error that a call throws, or null; and what the page's console was warned of. */
function messages(sizes: Sizes, backward: boolean, times = 1): {error: string | null; warnings: string[]} {
  const warnings: string[] = [];
  const warn = console.warn;
  console.warn = (...args: unknown[]) => void warnings.push(args.join(' '));
  try {
    for (let i = 0; i < times; i++) {
      tf.tidy(() => void run(tensorsOf(sizes), sizes, backward ? tf.ones(shapesOf(sizes).v) : null));
    }
    return {error: null, warnings};
  } catch (error) {
    return {error: (error as Error).message, warnings};
  } finally {
    console.warn = warn;
  }
}

/** The same with textures of at most `side` x `side` texels, and how many tensors the call left behind. */
function messageWithTextures(side: number, sizes: Sizes): {error: string | null; left: number} {
  const before = tf.memory().numTensors;
  const {error} = withTextures(side, () => messages(sizes, false));
  return {error, left: tf.memory().numTensors - before};
}

/**
 * Steps through a sequence, also in place: draws and compiles of each step after the first, and the distance to one call.
 */
async function decode(sizes: Sizes, tolerance: Tolerance) {
  const {B = 1, H = 2, N, r = 8, d = 8} = sizes;
  const x = tensorsOf(sizes);
  let state = zeroState({batchSize: B, numHeads: H, keyDim: r, valueDim: d});
  const moving = zeroState({batchSize: B, numHeads: H, keyDim: r, valueDim: d});
  const outputs: tf.Tensor[] = [];
  const inPlace: tf.Tensor[] = [];
  const draws = new Set<number>();
  let compiles = 0;
  for (let n = 0; n < N; n++) {
    const token = ([name, width]: ['q' | 'k' | 'v', number]) =>
      tf.tidy(() =>
        tf.relu(tf.neg(tf.neg(tf.reshape(tf.slice(x[name], [0, 0, n, 0], [B, H, 1, width]), [B, H, width])))),
      );
    const tokens = (
      [
        ['q', r],
        ['k', r],
        ['v', d],
      ] as ['q' | 'k' | 'v', number][]
    ).map(token);
    let next: ReturnType<typeof linearAttentionStep> | undefined;
    const counts = counted(() => {
      next = linearAttentionStep(
        tokens[0] as tf.Tensor3D,
        tokens[1] as tf.Tensor3D,
        tokens[2] as tf.Tensor3D,
        state,
      );
    });
    if (n > 0) {
      draws.add(counts.draws);
      compiles += counts.compiles;
    }
    inPlace.push(
      linearAttentionStepInPlace(
        tokens[0] as tf.Tensor3D,
        tokens[1] as tf.Tensor3D,
        tokens[2] as tf.Tensor3D,
        moving,
      ),
    );
    tf.dispose([...tokens, state.s, state.z]);
    const {output, state: after} = next as ReturnType<typeof linearAttentionStep>;
    outputs.push(output);
    state = after;
  }
  const [got, moved, want] = tf.tidy(() => {
    const relu = (t: tf.Tensor) => tf.relu(t);
    const stacked = [outputs, inPlace].map((x) => tf.stack(x, 2));
    return [...stacked, linearAttention(relu(x.q), relu(x.k), relu(x.v), {causal: true})];
  });
  const expected = (await want.data()) as Float32Array;
  const faults = [];
  for (const y of [got, moved]) {
    faults.push(difference((await y.data()) as Float32Array, expected, tolerance));
  }
  const fault = faults.find((found) => found !== null) ?? null;
  tf.dispose([got, moved, want, ...outputs, ...inPlace, x.q, x.k, x.v, state.s, state.z, moving.s, moving.z]);
  return {draws: [...draws], compiles, fault};
}

/** One step from the zero state with one feature, which returns v: the largest distance from it over all heads. */
async function farthestFromValue(B: number, H: number): Promise<number> {
  const values = numbers(B * H, 6);
  const output = tf.tidy(() => {
    const v = tf.tensor3d(values, [B, H, 1]);
    const state = zeroState({batchSize: B, numHeads: H, keyDim: 1, valueDim: 1});
    return linearAttentionStep(tf.onesLike(v), tf.onesLike(v), v, state).output;
  });
  const got = await output.data();
  output.dispose();
  return values.reduce((farthest, value, i) => Math.max(farthest, Math.abs(got[i] - value)), 0);
}

/** Tensors and textures that `times` calls with gradients leave behind. */
function leftBehind(sizes: Sizes, times: number): {tensors: number; buffers: number} {
  const x = tensorsOf(sizes);
  const dy = tf.ones(shapesOf(sizes).v);
  const call = () => tf.tidy(() => void run(x, sizes, dy));
  call();
  const before = {...tf.memory()};
  for (let i = 0; i < times; i++) {
    call();
  }
  const after = tf.memory();
  tf.dispose([x.q, x.k, x.v, dy]);
  return {
    tensors: after.numTensors - before.numTensors,
    buffers: after.numDataBuffers - before.numDataBuffers,
  };
}

Object.assign(globalThis, {
  forceSegmentLength,
  countCall,
  compilesFor,
  compareWithPlain,
  differentResults,
  changedBefore,
  messages,
  messageWithTextures,
  decode,
  farthestFromValue,
  leftBehind,
  gpuCounts: () => ({...gpuCounts}),
});
