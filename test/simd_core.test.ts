/** The SIMD core: every way it is reached, what it does with memory, and numbers that only long or odd calls show. */
import {execFileSync} from 'node:child_process';
import {join} from 'node:path';
import * as tf from '@tensorflow/tfjs-core';
import fc from 'fast-check';
import {disposeState, linearAttention, linearAttentionStep, zeroState} from '../index';
import {backwardOfArrays, forwardOfArrays} from '../src/linear_attention/arrays';
import {
  type PlainInputs,
  type PlainOutputs,
  plainBackward,
  plainForward,
} from '../src/linear_attention/plain';
import {RELAXED_SIMD_FLAG, simdOver} from '../src/linear_attention/simd_module';
import {stagedForward, stagingBytes} from '../src/linear_attention/simd_staged';
import type {DataFormat, Dims, LinearAttentionAttrs} from '../src/linear_attention/spec';
import {LinearAttention, LinearAttentionGrad} from '../src/linear_attention/spec';
import {LinearAttentionStep} from '../src/linear_attention/step';
import {POINTWISE_MAPS, pointwiseScalar} from '../src/pointwise';
import {random} from '../src/random';
import {wasmMemory} from '../src/tfjs';
import {disableSimd, hasRelaxedSimd, hasSimd} from '../src/wasm/instance';
import {BACKENDS, describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {randomNumbers} from './helpers/random_numbers';

const ATTRS: LinearAttentionAttrs = {
  updateRule: 'linear',
  causal: true,
  featureMap: 'elu',
  normalize: true,
  eps: 1e-6,
  scale: 1,
  dataFormat: 'BNHD',
  hasMask: false,
  hasState: false,
};

/** Inputs of a call and gradients that arrive at its results. */
function arraysFor({B, H, Nq, Nk, r, d}: Dims, seed: number) {
  let next = seed * 100;
  const make = (size: number) => randomNumbers(size, next++);
  return {
    q: make(B * H * Nq * r),
    k: make(B * H * Nk * r),
    v: make(B * H * Nk * d),
    mask: make(B * Nk).map((x) => (x > -0.5 ? 1 : 0)),
    s: make(B * H * r * d),
    z: make(B * H * r).map((x) => 20 + x),
    dOutput: make(B * H * Nq * d),
    dS: make(B * H * r * d),
    dZ: make(B * H * r),
  };
}

/** What backward is given: forward's inputs and the two of its results that are saved. */
const saved = <T extends object>(x: T, {output, inverse}: PlainOutputs) => ({...x, output, inverse});

function expectAlike(got: object, want: object): void {
  const numbers = want as {[name: string]: Float32Array};
  for (const [name, values] of Object.entries(got as {[name: string]: Float32Array})) {
    expect([name, difference(values, numbers[name], FLOAT32)]).toEqual([name, null]);
  }
}

const size = (max: number) => fc.integer({min: 1, max});

describe('the SIMD core on arrays', () => {
  test('is what runs here', () => expect(hasSimd()).toBe(true));

  test('equals plain JavaScript for any sizes and options, forward and backward', () => {
    const shape = fc.record({
      B: size(2),
      H: size(5),
      N: size(70),
      Nq: size(70),
      r: size(21),
      d: size(21),
      featureMap: fc.constantFrom(...POINTWISE_MAPS),
      dataFormat: fc.constantFrom<DataFormat>('BHND', 'BNHD'),
      causal: fc.boolean(),
      normalize: fc.boolean(),
      hasMask: fc.boolean(),
      hasState: fc.boolean(),
      seed: size(1000),
    });
    const property = fc.property(shape, ({B, H, N, Nq, r, d, seed, ...options}) => {
      // Denominators near 0 of either sign make the comparison a matter of chance.
      const normalize = options.normalize && options.featureMap !== 'identity';
      const dims = {B, H, Nq: options.causal ? N : Nq, Nk: N, r, d};
      const attrs = {...ATTRS, ...options, normalize, scale: 0.5, eps: 1e-2};
      const x = arraysFor(dims, seed);
      const forward = forwardOfArrays(x, dims, attrs);
      expectAlike(forward, plainForward(x, dims, attrs));
      const got = backwardOfArrays(saved(x, forward), dims, attrs);
      expectAlike(got, plainBackward(x, forward, x, dims, attrs));
    });
    fc.assert(property, {numRuns: 60, seed: 7});
  });

  test('carries the state through staging blocks of several heads', () => {
    for (const dataFormat of ['BHND', 'BNHD'] as const) {
      const dims = {B: 1, H: 9, Nq: 60, Nk: 60, r: 64, d: 64};
      const attrs = {...ATTRS, dataFormat, hasState: true, hasMask: true};
      const x = arraysFor(dims, 3);
      const forward = forwardOfArrays(x, dims, attrs);
      expectAlike(forward, plainForward(x, dims, attrs));
      expectAlike(
        backwardOfArrays(saved(x, forward), dims, attrs),
        plainBackward(x, forward, x, dims, attrs),
      );
    }
  });

  test('stages through about 1 MB whatever the length', () => {
    for (const N of [64, 4096]) {
      const dims = {B: 1, H: 8, Nq: N, Nk: N, r: 64, d: 64};
      const rows = new Float32Array(8 * N * 64).fill(0.1);
      const state = new Float32Array(8 * 64 * 64);
      const x = {q: rows, k: rows, v: rows, mask: rows, s: state, z: state};
      const forward = forwardOfArrays(x, dims, ATTRS);
      backwardOfArrays(saved({...x, dOutput: rows, dS: state, dZ: state}, forward), dims, ATTRS);
      expect(stagingBytes()).toBeGreaterThan(0);
      expect(stagingBytes()).toBeLessThan(1.5 * 2 ** 20);
    }
  });

  test('gives the same bits after its memory was full of NaN', () => {
    const dims = {B: 1, H: 3, Nq: 37, Nk: 37, r: 6, d: 9};
    const x = arraysFor(dims, 5);
    const run = (values: typeof x) => {
      const forward = forwardOfArrays(values, dims, ATTRS);
      return {...forward, ...backwardOfArrays(saved(values, forward), dims, ATTRS)};
    };
    const clean = run(x);
    const poisoned = Object.fromEntries(
      Object.entries(x).map(([name, values]) => [name, values.map(() => Number.NaN)]),
    ) as typeof x;
    run(poisoned);
    expect(run(x)).toEqual(clean);
  });

  test('keeps the state of 20,000 tokens within 1e-6 of double precision', () => {
    const dims = {B: 1, H: 1, Nq: 20000, Nk: 20000, r: 4, d: 5};
    const {uniform} = random(2);
    const make = (count: number) => Float32Array.from({length: count}, () => 2 * uniform() - 1);
    const [q, k, v] = [80000, 80000, 100000].map(make);
    const none = new Float32Array(1);
    const x = {q, k, v, mask: none, s: none, z: none};
    const got = stagedForward(x, dims, ATTRS) as {s: Float32Array; z: Float32Array};
    const s = new Float64Array(20);
    const z = new Float64Array(4);
    for (let n = 0; n < dims.Nk; n++) {
      for (let i = 0; i < 4; i++) {
        const phi = pointwiseScalar('elu', x.k[n * 4 + i]);
        z[i] += phi;
        for (let j = 0; j < 5; j++) {
          s[i * 5 + j] += phi * x.v[n * 5 + j];
        }
      }
    }
    const tight = {rms: 1e-6, max: 2e-6};
    expect(difference(got.s, s, tight)).toBeNull();
    expect(difference(got.z, z, tight)).toBeNull();
  });

  describe.each(POINTWISE_MAPS)('%s', (featureMap) => {
    const dims = {B: 1, H: 2, Nq: 9, Nk: 9, r: 5, d: 6};
    const attrs = {...ATTRS, featureMap, normalize: false};
    const at = (n: number, h: number, width: number) => (n * dims.H + h) * width;

    test.each(['q', 'k', 'v'] as const)('NaN in %s reaches outputs, and none before it', (name) => {
      const x = arraysFor(dims, 8);
      const before = forwardOfArrays(x, dims, attrs).output;
      const width = name === 'v' ? dims.d : dims.r;
      x[name][at(4, 1, width) + 2] = Number.NaN;
      const after = forwardOfArrays(x, dims, attrs).output;
      expect(after.subarray(0, at(4, 1, dims.d))).toEqual(before.subarray(0, at(4, 1, dims.d)));
      const column = name === 'v' ? 2 : 0;
      expect(after[at(4, 1, dims.d) + column]).toBeNaN();
      expect(after[at(8, 0, dims.d)]).toBe(before[at(8, 0, dims.d)]);
      if (name !== 'q') {
        expect(after[at(8, 1, dims.d) + column]).toBeNaN();
      }
    });

    test('numbers from -100 to 88 and infinities map as in double precision', () => {
      const inputs = [-100, -88, -87, -20, -1, -1e-3, -1e-20, 0, 1e-20, 0.5, 3, 88].map(Math.fround);
      const special = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
      const r = inputs.length + special.length;
      const one = {B: 1, H: 1, Nq: 1, Nk: 1, r, d: 1};
      const x: PlainInputs = {...arraysFor(one, 1), k: Float32Array.from([...inputs, ...special])};
      const {z} = forwardOfArrays(x, one, attrs);
      const want = [...x.k].map((value) => Math.fround(pointwiseScalar(featureMap, value)));
      // Below 1.2e-38 elu gives 0.
      inputs.forEach((_, i) => {
        expect(Math.abs(z[i] - want[i])).toBeLessThanOrEqual(5e-7 * Math.abs(want[i]) + 1.2e-38);
      });
      expect([...z.subarray(inputs.length)]).toEqual(want.slice(inputs.length));
    });
  });
});

describeOnBackends('linearAttention in SIMD', (backend) => {
  const inputs = (seed: number, N = 19): tf.Tensor[] =>
    [5, 5, 7].map((width, i) => tf.tensor(randomNumbers(2 * N * 3 * width, seed + i), [2, N, 3, width]));
  const options = {causal: true, dataFormat: 'BNHD' as const};

  async function everything(seed: number): Promise<Float32Array[]> {
    const x = inputs(seed);
    const output = linearAttention(x[0], x[1], x[2], options);
    const gradients = tf.grads((q, k, v) => linearAttention(q, k, v, options))(x);
    const numbers = [output, ...gradients].map((t) => t.dataSync() as Float32Array);
    tf.dispose([x, output, gradients]);
    return numbers;
  }

  test('where SIMD is missing, plain JavaScript gives the same', async () => {
    const want = await everything(1);
    disableSimd(true);
    try {
      const got = await everything(1);
      got.forEach((values, i) => {
        expect(difference(values, want[i], FLOAT32)).toBeNull();
      });
      // Really another path: the last bits differ somewhere.
      expect(got).not.toEqual(want);
      const q = tf.ones([1, 2, 4]);
      const state = zeroState({batchSize: 1, numHeads: 2, keyDim: 4, valueDim: 4});
      const next = linearAttentionStep(q, q, q, state);
      expect(difference(next.output.dataSync(), new Float32Array(8).fill(1), FLOAT32)).toBeNull();
      tf.dispose(q);
      tf.dispose(next);
      disposeState(state);
    } finally {
      disableSimd(false);
    }
  });

  test('relaxed SIMD, where it is asked for and there, gives the same to rounding', async () => {
    const want = await everything(3);
    tf.env().set(RELAXED_SIMD_FLAG, true);
    try {
      const got = await everything(3);
      got.forEach((values, i) => {
        expect(difference(values, want[i], FLOAT32)).toBeNull();
      });
      if (hasRelaxedSimd()) {
        expect(got).not.toEqual(want);
      } else {
        expect(got).toEqual(want);
      }
    } finally {
      tf.env().set(RELAXED_SIMD_FLAG, false);
    }
    expect(await everything(3)).toEqual(want);
  });

  test('20 repeats give the same bits', async () => {
    const want = await everything(2);
    for (let i = 0; i < 20; i++) {
      expect(await everything(2)).toEqual(want);
    }
  });

  test('10,000 steps leave no tensors behind and do not grow the memory', async () => {
    const heap = () => (backend === 'wasm' ? wasmMemory(tf.backend())?.buffer.byteLength : stagingBytes());
    const q = tf.ones([1, 8, 16]);
    let state = zeroState({batchSize: 1, numHeads: 8, keyDim: 16, valueDim: 16});
    const advance = (steps: number) => {
      for (let i = 0; i < steps; i++) {
        const next = linearAttentionStep(q, q, q, state);
        next.output.dispose();
        disposeState(state);
        state = next.state;
      }
    };
    advance(100);
    const [tensors, bytes] = [tf.memory().numTensors, heap()];
    advance(backend === 'wasm' ? 10000 : 1000);
    expect(tf.memory().numTensors).toBe(tensors);
    expect(heap()).toBe(bytes);
    disposeState(state);
    q.dispose();
  });

  test('a step has the gradients of a sequence of one token', async () => {
    await expectNoLeak(() => {
      const [q, k, v] = [3, 3, 5].map((width, i) => tf.tensor(randomNumbers(2 * width, i), [1, 2, width]));
      const s = tf.tensor(randomNumbers(30, 7), [1, 2, 3, 5]);
      const z = tf.fill([1, 2, 3], 4);
      const weights = tf.tensor(randomNumbers(46, 9));
      const loss = (parts: tf.Tensor[]) =>
        tf.sum(tf.mul(tf.concat(parts.map((part) => tf.reshape(part, [-1]))), weights)) as tf.Scalar;
      const step = tf.grads((...x: tf.Tensor[]) => {
        const next = linearAttentionStep(x[0], x[1], x[2], {s: x[3], z: x[4]});
        return loss([next.output, next.state.s, next.state.z]);
      })([q, k, v, s, z]);
      const whole = tf.grads((...x: tf.Tensor[]) => {
        const [a, b, c] = x.slice(0, 3).map((t) => tf.expandDims(t, 2));
        const initialState = {s: x[3], z: x[4]};
        const {output, state} = linearAttention(a, b, c, {causal: true, initialState, returnState: true});
        return loss([output, state.s, state.z]);
      })([q, k, v, s, z]);
      step.forEach((gradient, i) => {
        expect(difference(gradient.dataSync(), whole[i].dataSync(), FLOAT32)).toBeNull();
      });
      tf.dispose([q, k, v, s, z, weights, ...step, ...whole]);
    });
  });
});

const describeOnWasm = BACKENDS.includes('wasm') ? describe : describe.skip;

describeOnWasm('the memory of the wasm backend', () => {
  beforeAll(async () => {
    await tf.setBackend('wasm');
    await tf.ready();
  });

  interface Wasm {
    asm?: object;
    wasmMemory?: unknown;
    HEAPU8: Uint8Array;
    _malloc(bytes: number): number;
    _free(at: number): void;
  }
  const wasm = () => (tf.backend() as unknown as {wasm: Wasm}).wasm;

  /** The backend with some fields of its module replaced. */
  const backendWith = (fields: Partial<Wasm>): object =>
    new Proxy(tf.backend(), {
      get(target, key) {
        if (key === 'wasm') {
          return {...wasm(), ...fields};
        }
        const value = Reflect.get(target, key);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });

  test('is found where the plain, SIMD and threaded builds keep it', () => {
    const memory = wasmMemory(tf.backend());
    expect(memory?.buffer).toBe(wasm().HEAPU8.buffer);
    expect(wasmMemory(backendWith({asm: {memory}, wasmMemory: undefined}))).toBe(memory);
    expect(wasmMemory(backendWith({asm: {anything: 1, D: memory}, wasmMemory: undefined}))).toBe(memory);
    expect(wasmMemory(backendWith({asm: undefined, wasmMemory: memory}))).toBe(memory);
    expect(wasmMemory(backendWith({asm: {}, wasmMemory: undefined}))).toBeNull();
    expect(wasmMemory(backendWith({asm: {memory: new WebAssembly.Memory({initial: 1})}}))).toBeNull();
  });

  test('where it cannot be found, the kernels copy and give the same', () => {
    const hidden = backendWith({asm: {}, wasmMemory: undefined});
    const x = [5, 5, 7].map((width, i) => tf.tensor(randomNumbers(33 * width, i), [1, 11, 3, width]));
    const [mask, s, z] = [tf.zeros([1]), tf.zeros([1]), tf.zeros([1])];
    const named = {q: x[0], k: x[1], v: x[2], mask, s, z};
    const run = (name: string, inputs: object, attrs: object, backend: object): Float32Array[] => {
      const kernel = tf.getKernel(name, 'wasm') as tf.KernelConfig;
      const call = {inputs, attrs, backend} as Parameters<tf.KernelFunc>[0];
      return (kernel.kernelFunc(call) as tf.TensorInfo[]).map((info) => {
        const tensor = tf.engine().makeTensorFromTensorInfo(info);
        const values = tensor.dataSync() as Float32Array;
        tensor.dispose();
        return values;
      });
    };
    const [output, , , inverse] = run(LinearAttention, named, ATTRS, tf.backend());
    expect(run(LinearAttention, named, ATTRS, hidden)[0]).toEqual(output);
    const cotangents = {
      output: tf.tensor(output, x[2].shape),
      inverse: tf.tensor(inverse, [1, 11, 3]),
      dOutput: x[2],
      dS: tf.ones([1, 3, 5, 7]),
      dZ: tf.ones([1, 3, 5]),
    };
    const all = {...named, ...cotangents};
    expect(run(LinearAttentionGrad, all, ATTRS, hidden)).toEqual(
      run(LinearAttentionGrad, all, ATTRS, tf.backend()),
    );
    const token = {q: tf.ones([1, 3, 5]), k: tf.ones([1, 3, 5]), v: tf.ones([1, 3, 7])};
    const step = {...token, s: cotangents.dS, z: cotangents.dZ};
    const direct = run(LinearAttentionStep, step, ATTRS, tf.backend());
    run(LinearAttentionStep, step, ATTRS, hidden).forEach((values, i) => {
      expect(difference(values, direct[i], FLOAT32)).toBeNull();
    });
    tf.dispose([x, mask, s, z]);
    tf.dispose(cotangents);
    tf.dispose(token);
  });

  test('may hold anything where results go', () => {
    const poison = () => {
      const blocks = [64, 1024, 65536, 1 << 20].flatMap((bytes) =>
        [1, 2, 3, 4].map(() => ({at: wasm()._malloc(bytes), bytes})),
      );
      for (const {at, bytes} of blocks) {
        wasm().HEAPU8.fill(255, at, at + bytes);
      }
      for (const {at} of blocks) {
        wasm()._free(at);
      }
    };
    const x = [6, 6, 9].map((width, i) => tf.tensor(randomNumbers(66 * width, i), [1, 33, 2, width]));
    for (const causal of [true, false]) {
      for (const normalize of [true, false]) {
        poison();
        const options = {causal, normalize, dataFormat: 'BNHD' as const, returnState: true as const};
        const {output, state} = linearAttention(x[0], x[1], x[2], options);
        poison();
        const gradients = tf.grads((q, k, v) => linearAttention(q, k, v, {...options, returnState: false}))(
          x,
        );
        poison();
        const next = linearAttentionStep(tf.ones([1, 2, 6]), tf.ones([1, 2, 6]), tf.ones([1, 2, 9]), state);
        for (const t of [output, state.s, state.z, ...gradients, next.output, next.state.s, next.state.z]) {
          expect(t.dataSync().every(Number.isFinite)).toBe(true);
        }
        tf.dispose([output, ...gradients, next.output]);
        disposeState(state);
        disposeState(next.state);
      }
    }
    tf.dispose(x);
  });
});

describe('instantiate', () => {
  test('works on the shared memory of a threaded build', () => {
    const memory = new WebAssembly.Memory({initial: 1, maximum: 65536, shared: true});
    expect(simdOver(memory)?.stepScratch(4)).toBeGreaterThan(0);
    expect(simdOver(memory)).toBe(simdOver(memory));
  });

  test('prepares in the background where pages may not compile synchronously, and gives null meanwhile', async () => {
    const refused = jest.spyOn(WebAssembly, 'Instance').mockImplementation(() => {
      throw new RangeError('WebAssembly.Instance is disallowed on the main thread');
    });
    const memory = new WebAssembly.Memory({initial: 1, maximum: 65536});
    try {
      expect(simdOver(memory)).toBeNull();
    } finally {
      refused.mockRestore();
    }
    for (let i = 0; i < 100 && simdOver(memory) === null; i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(simdOver(memory)?.stepScratch(4)).toBeGreaterThan(0);
  });
});

test('the committed modules are what the sources compile to', () => {
  const script = join(__dirname, '..', 'scripts', 'build_wasm.mjs');
  expect(() => execFileSync(process.execPath, [script, '--check'], {stdio: 'pipe'})).not.toThrow();
});
