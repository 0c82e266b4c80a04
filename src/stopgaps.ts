/** Kernels that serve a backend until its own are imported. */
import * as tf from '@tensorflow/tfjs-core';

const stopgaps = new WeakSet<tf.KernelConfig>();

/** Registers a composed kernel, which the backend's own may replace. */
export function registerStopgap(config: tf.KernelConfig): void {
  stopgaps.add(config);
  tf.registerKernel(config);
}

/** Registers a backend's own kernel, in a stopgap's place too. Any other kernel that is there stays. */
export function registerOwn(config: tf.KernelConfig): void {
  const {kernelName, backendName} = config;
  const present = tf.getKernel(kernelName, backendName);
  if (present != null && !stopgaps.has(present)) {
    return;
  }
  if (present != null) {
    tf.unregisterKernel(kernelName, backendName); // registering over it would warn
  }
  tf.registerKernel(config);
}
