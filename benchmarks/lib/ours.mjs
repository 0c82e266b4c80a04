/** tfjs and this package's build, as a user has them. */
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-wasm';
import * as tf from '@tensorflow/tfjs-core';

export {tf};
export const tfla = await import('tfjs-linear-attention');

export async function useBackend(name) {
  // The cpu backend advertises tfjs-node at its first tensor.
  const {warn} = console;
  console.warn = () => undefined;
  try {
    if (!(await tf.setBackend(name))) throw new Error(`the backend '${name}' could not be started`);
    await tf.ready();
    tf.scalar(0).dispose();
  } finally {
    console.warn = warn;
  }
}

/** Names of the kernels that run in f, each once, in order. Tensors that f returns are disposed. */
export async function kernelsOf(f) {
  const {kernels} = await tf.profile(() => {
    const result = f();
    if (result instanceof tf.Tensor || Array.isArray(result)) tf.dispose(result);
  });
  return [...new Set(kernels.map(({name}) => name))];
}

/** Normal numbers (Box-Muller over a 32-bit generator, mulberry32), the same for the same seed. */
export function normal(size, seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  const values = new Float32Array(size);
  for (let i = 0; i < size; i++) {
    values[i] = Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  }
  return values;
}

/** elu(x) + 1 of every value. */
export const features = (values) => values.map((x) => (x > 0 ? x + 1 : Math.exp(x)));

/** The values of a tensor, or a list of those of several; the tensors are disposed. */
export function read(...tensors) {
  const arrays = tensors.map((tensor) => tensor.dataSync());
  tf.dispose(tensors);
  return arrays.length === 1 ? arrays[0] : arrays;
}

/** Output, dq, dk, dv of f at the inputs, for a given gradient of the output. */
export function outputAndGradients(f, inputs, dy) {
  let output;
  const gradients = tf.grads((...x) => {
    output = tf.keep(f(...x));
    return output;
  })(inputs, dy);
  return read(output, ...gradients);
}
