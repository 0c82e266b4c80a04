/**
 * Kernels that are one function of typed arrays: the same loop over the cpu backend's values and over views of the wasm
 * backend's memory, and stock ops on every other backend.
 */
import * as tf from '@tensorflow/tfjs-core';
import {asTensor, cpuTensor, cpuValues, wasmMemory, wasmOutput, wasmView} from './tfjs';

export interface ArrayKernel<A> {
  kernelName: string;
  outputShape(shapes: number[][], attrs: A): number[];
  /** Fills `output`, which holds anything before. */
  fill(output: Float32Array, inputs: Float32Array[], shapes: number[][], attrs: A): void;
  /** The same in stock ops. */
  composed(inputs: tf.Tensor[], attrs: A): tf.Tensor;
  /** Gradients of the inputs, in ops with gradients of any order. */
  gradients(dy: tf.Tensor, inputs: tf.Tensor[], attrs: A): (() => tf.Tensor)[];
}

/** The op of a kernel, which is registered for a backend when it is first used there. Inputs are float32. */
export function arrayOp<A extends object>(
  kernel: ArrayKernel<A>,
): (inputs: tf.Tensor[], attrs: A) => tf.Tensor {
  const {kernelName} = kernel;
  return (inputs, attrs) => {
    const backendName = tf.getBackend();
    if (tf.getKernel(kernelName, backendName) == null) {
      const run = backendName === 'cpu' ? runOnCpu : backendName === 'wasm' ? runOnWasm : runComposed;
      tf.registerKernel({
        kernelName,
        backendName,
        kernelFunc: (args) =>
          run(
            kernel,
            Object.values(args.inputs) as tf.TensorInfo[],
            args.attrs as object as A,
            args.backend as object,
          ),
      });
    }
    if (tf.getGradient(kernelName) == null) {
      tf.registerGradient({
        kernelName,
        saveAllInputs: true,
        gradFunc: (dy, saved, given) =>
          Object.fromEntries(kernel.gradients(dy as tf.Tensor, saved, given as object as A).entries()),
      });
    }
    // An array: tfjs saves all inputs of a kernel only when it gets one.
    return tf.engine().runKernel(kernelName, inputs as never, attrs as never) as tf.Tensor;
  };
}

function runOnCpu<A>(
  {outputShape, fill}: ArrayKernel<A>,
  inputs: tf.TensorInfo[],
  attrs: A,
  backend: object,
): tf.TensorInfo {
  const shapes = inputs.map(({shape}) => shape);
  const shape = outputShape(shapes, attrs);
  const output = new Float32Array(tf.util.sizeFromShape(shape));
  const values = inputs.map((x) => cpuValues(backend, x));
  fill(output, values, shapes, attrs);
  return cpuTensor(backend, shape, output);
}

function runOnWasm<A>(
  kernel: ArrayKernel<A>,
  inputs: tf.TensorInfo[],
  attrs: A,
  backend: object,
): tf.TensorInfo {
  if (wasmMemory(backend) === null) {
    return runComposed(kernel, inputs, attrs, backend);
  }
  const shapes = inputs.map(({shape}) => shape);
  const output = wasmOutput(backend, kernel.outputShape(shapes, attrs));
  // After the allocation, which may detach views.
  const [y, ...xs] = [output, ...inputs].map((x) => wasmView(backend, x) as Float32Array);
  kernel.fill(y, xs, shapes, attrs);
  return output;
}

function runComposed<A>(
  kernel: ArrayKernel<A>,
  inputs: tf.TensorInfo[],
  attrs: A,
  backend: object,
): tf.TensorInfo {
  return tf.tidy(() =>
    kernel.composed(
      inputs.map((x) => asTensor(backend, x)),
      attrs,
    ),
  );
}
