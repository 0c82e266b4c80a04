/** The backends that the suites run on in Node; BACKENDS=cpu (or wasm, or both with a comma) narrows them. */
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-wasm';
import '../../index';

export const BACKENDS: string[] = (process.env.BACKENDS ?? 'cpu,wasm').split(',');

/** describe() once per backend, with the backend set and leak checking on. */
export function describeOnBackends(title: string, body: (backend: string) => void): void {
  for (const backend of BACKENDS) {
    describe(`${title} [${backend}]`, () => {
      beforeAll(async () => {
        tf.env().set('IS_TEST', true);
        if (!(await tf.setBackend(backend))) {
          throw new Error(`the backend '${backend}' could not be initialised`);
        }
        await tf.ready();
      });
      body(backend);
    });
  }
}

/** Runs f and fails when it leaves tensors behind. f must dispose what it returns, or return nothing. */
export async function expectNoLeak(f: () => unknown | Promise<unknown>): Promise<void> {
  const before = tf.memory().numTensors;
  await f();
  expect(tf.memory().numTensors).toBe(before);
}
