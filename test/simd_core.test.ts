/** The SIMD core: every way it is reached, and what it does with memory. Its numbers: simd_arrays.test.ts. */
import {execFileSync} from 'node:child_process';
import {join} from 'node:path';
import * as tf from '@tensorflow/tfjs-core';
import {disposeState, linearAttention, linearAttentionStep, zeroState} from '../index';
import {simdOver} from '../src/linear_attention/simd_module';
import {stagingBytes} from '../src/linear_attention/simd_staged';
import type {LinearAttentionAttrs} from '../src/linear_attention/spec';
import {LinearAttention, LinearAttentionGrad} from '../src/linear_attention/spec';
import {LinearAttentionStep} from '../src/linear_attention/step';
import {wasmMemory} from '../src/tfjs';
import {disableSimd, hasRelaxedSimd} from '../src/wasm/instance';
import {RELAXED_SIMD_FLAG} from '../src/wasm/relaxed';
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
