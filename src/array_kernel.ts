/**
 * Kernels that are one function of typed arrays: the same loop over the cpu backend's values and over views of the wasm
 * backend's memory, and stock ops on every other backend.
 */
import * as tf from '@tensorflow/tfjs-core';
import {cpuTensor, cpuValues, wasmMemory, wasmOutput, wasmView} from './tfjs';

export interface ArrayKernel {
  kernelName: string;
  outputShape(inputs: number[][]): number[];
  /** Fills `output`, which holds anything before. */
  fill(output: Float32Array, inputs: Float32Array[], shapes: number[][]): void;
  /** The same in stock ops. */
  composed(inputs: tf.Tensor[]): tf.Tensor;
  /** Gradients of the inputs, in ops with gradients of any order. */
  gradients(dy: tf.Tensor, inputs: tf.Tensor[]): (() => tf.Tensor)[];
}

/** The op of a kernel, which is registered for a backend when it is first used there. Inputs are float32. */
export function arrayOp(kernel: ArrayKernel): (...inputs: tf.Tensor[]) => tf.Tensor {
  const {kernelName} = kernel;
  return (...inputs) => {
    const backendName = tf.getBackend();
    if (tf.getKernel(kernelName, backendName) == null) {
      const run = RUN[backendName] ?? runComposed;
      tf.registerKernel({
        kernelName,
        backendName,
        kernelFunc: (args) => run(kernel, listOf(args.inputs), args.backend as object),
      });
    }
    if (tf.getGradient(kernelName) == null) {
      tf.registerGradient({
        kernelName,
        saveAllInputs: true,
        gradFunc: (dy, saved) => Object.fromEntries(kernel.gradients(dy as tf.Tensor, saved).entries()),
      });
    }
    // An array: tfjs saves all inputs of a kernel only when it gets one.
    return tf.engine().runKernel(kernelName, inputs as never) as tf.Tensor;
  };
}

const listOf = (inputs: tf.NamedTensorInfoMap): tf.TensorInfo[] => Object.values(inputs) as tf.TensorInfo[];

type Run = (kernel: ArrayKernel, inputs: tf.TensorInfo[], backend: object) => tf.TensorInfo;

const runComposed: Run = (kernel, inputs) =>
  tf.tidy(() =>
    kernel.composed(
      inputs.map((x) => (x instanceof tf.Tensor ? x : tf.engine().makeTensorFromTensorInfo(x))),
    ),
  );

const RUN: {[backend: string]: Run} = {
  cpu: ({outputShape, fill}, inputs, backend) => {
    const shapes = inputs.map(({shape}) => shape);
    const shape = outputShape(shapes);
    const output = new Float32Array(tf.util.sizeFromShape(shape));
    fill(
      output,
      inputs.map((x) => cpuValues(backend, x)),
      shapes,
    );
    return cpuTensor(backend, shape, output);
  },
  wasm: (kernel, inputs, backend) => {
    if (wasmMemory(backend) === null) {
      return runComposed(kernel, inputs, backend);
    }
    const shapes = inputs.map(({shape}) => shape);
    const output = wasmOutput(backend, kernel.outputShape(shapes));
    const [y, ...xs] = [output, ...inputs].map((x) => wasmView(backend, x) as Float32Array);
    kernel.fill(y, xs, shapes);
    return output;
  },
};
