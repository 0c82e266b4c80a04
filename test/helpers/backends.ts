/**
 * The backends that the suites run on in Node; BACKENDS=cpu (or several, with commas) narrows or widens them.
 * `tensorflow` is tfjs-node's: the suites in test/node ask for it, the others run on it when BACKENDS names it.
 */
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-wasm';
import '../../index';
import {whyNoTfjsNode} from './tfjs_node';

export const BACKENDS: string[] = (process.env.BACKENDS ?? 'cpu,wasm').split(',');

/**
 * describe() once per backend, with the backend set and leak checking on. Where tfjs-node cannot run its part is skipped
 * with a warning; under CI (the environment variable) it fails.
 */
export function describeOnBackends(
  title: string,
  body: (backend: string) => void,
  backends: string[] = BACKENDS,
): void {
  for (const backend of backends) {
    const name = `${title} [${backend}]`;
    const missing = backend === 'tensorflow' ? whyNoTfjsNode() : null;
    if (missing !== null) {
      console.warn(`SKIPPED: ${name}. ${missing}`);
      describe.skip(name, () => body(backend));
      continue;
    }
    describe(name, () => {
      beforeAll(async () => {
        await useBackend(backend);
      }, 120000);
      body(backend);
    });
  }
}

/**
 * Makes a backend the one in use, with leak checking on; not on tfjs-node, whose reshape makes a copy, which tfjs's check
 * takes for a leak of fused matMul. tfjs-node is loaded when it is first asked for.
 */
export async function useBackend(backend: string): Promise<void> {
  tf.env().set('IS_TEST', backend !== 'tensorflow');
  if (backend === 'tensorflow') {
    await import('@tensorflow/tfjs-node');
  }
  if (!(await tf.setBackend(backend))) {
    throw new Error(`the backend '${backend}' could not be initialised`);
  }
  await tf.ready();
}

/** Runs f and fails when it leaves tensors behind. f must dispose what it returns, or return nothing. */
export async function expectNoLeak(f: () => unknown | Promise<unknown>): Promise<void> {
  const before = tf.memory().numTensors;
  await f();
  expect(tf.memory().numTensors).toBe(before);
}
