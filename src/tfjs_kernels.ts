/**
 * Looking up and running kernels as tfjs-core does, for those that take a few microseconds: its own ways take several more.
 * What is read here was read in tfjs 4.22; a tfjs that keeps it elsewhere gets its own ways.
 */
import * as tf from '@tensorflow/tfjs-core';

// The CommonJS build looks names of tfjs up at every use, and these are used at every step.
const engine = tf.engine;
const env = tf.env;

type Registry = Map<string, tf.KernelConfig>;

let registry: Registry | null | undefined;

/** Where tfjs-core keeps its kernels, or null where `kernel` is not to be found there under its key. */
function findRegistry(key: string, kernel: tf.KernelConfig): Registry | null {
  const {_tfGlobals} = globalThis as {_tfGlobals?: Map<string, unknown>};
  const found = _tfGlobals?.get?.('kernelRegistry') as Registry | undefined;
  return found?.get?.(key) === kernel ? found : null;
}

/**
 * tf.getKernel for the active backend, of one name: undefined where that has no such kernel, or no backend is active yet.
 * tf.getKernel puts its key together at each call, which takes longer than all the rest of it.
 */
export function kernelLookup(name: string): () => tf.KernelConfig | undefined {
  const keys = new Map<string, string>();
  return () => {
    const {backendName} = engine();
    const key = keys.get(backendName);
    if (key !== undefined && registry) {
      return registry.get(key);
    }
    const kernel = tf.getKernel(name, backendName);
    if (kernel !== undefined) {
      const newKey = `${backendName}_${name}`;
      keys.set(backendName, newKey);
      registry ??= findRegistry(newKey, kernel);
    }
    return kernel;
  };
}

/** True where no gradient, profile, debug mode or test looks at what kernels take and give. */
export function isUnwatched(): boolean {
  const {state} = engine();
  const flags = env();
  return (
    state?.gradientDepth === 0 &&
    state.profiling === false &&
    !flags.getBool('DEBUG') &&
    !flags.getBool('IS_TEST')
  );
}

/**
 * Runs a kernel of several outputs as tf.engine().runKernel does, without what that prepares for gradients, profiles, debug
 * mode and tests where none of these is on.
 */
export function runKernel(kernel: tf.KernelConfig, inputs: object, attrs: object): tf.Tensor[] {
  return isUnwatched()
    ? runUnwatched(kernel, inputs, attrs)
    : (engine().runKernel(kernel.kernelName, {...inputs}, {...attrs}) as tf.Tensor[]);
}

/** The same where isUnwatched() was asked. A tensor that the kernel hands back as it was given stays that tensor. */
export function runUnwatched(kernel: tf.KernelConfig, inputs: object, attrs: object): tf.Tensor[] {
  const infos = kernel.kernelFunc({
    inputs: inputs as tf.NamedTensorInfoMap,
    attrs: attrs as tf.NamedAttrMap,
    backend: engine().backend,
  }) as tf.TensorInfo[];
  return infos.map((info) =>
    (info as tf.Tensor).rank === undefined ? engine().makeTensorFromTensorInfo(info) : (info as tf.Tensor),
  );
}
