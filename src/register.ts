/**
 * Making kernels known to tfjs: a backend's own when its entry (kernels/) is imported, the composed form for any other
 * backend when it is first used. Nothing of any one backend is imported here.
 */
import * as tf from '@tensorflow/tfjs-core';
import {check, checkOptions, show} from './errors';
import {composedKernels} from './linear_attention/composed_kernels';
import {linearAttentionGradient} from './linear_attention/gradient';
import {LinearAttention} from './linear_attention/spec';
import {linearAttentionStepGradient} from './linear_attention/step';
import {registerOwn, registerStopgap} from './stopgaps';
import {warnOfTwoCopies} from './tfjs_copies';

/** What was written for one backend. */
export interface BackendKernels {
  /** tfjs's name of it. The backend itself may be imported later: tfjs keeps kernels by name. */
  backend: string;
  kernels: tf.KernelConfig[];
  /** Of kernels that stand in `kernels` only. */
  gradients?: tf.GradConfig[];
}

const own = new Map<string, BackendKernels>();

/** Registers a backend's own kernels, also in the place of the composed form if that came first. */
export function addKernels(added: BackendKernels): void {
  warnOfTwoCopies();
  own.set(added.backend, added);
  registerFor(added.backend);
}

/** Registers what `backend` lacks. tfjs warns about duplicates, so a kernel that is there stays. */
function registerFor(backend: string): void {
  const {kernels = [], gradients = []} = own.get(backend) ?? {};
  kernels.forEach(registerOwn);
  for (const config of composedKernels(backend)) {
    if (tf.getKernel(config.kernelName, backend) == null) {
      registerStopgap(config);
    }
  }
  for (const gradient of [linearAttentionGradient, linearAttentionStepGradient, ...gradients]) {
    if (tf.getGradient(gradient.kernelName) == null) {
      tf.registerGradient(gradient);
    }
  }
}

/** Makes sure that the active backend has kernels, whatever it is called. */
export function ensureRegistered(): void {
  const backend = tf.getBackend();
  if (backend != null && tf.getKernel(LinearAttention, backend) == null) {
    registerFor(backend);
  }
}

/**
 * Registers the package's kernels and gradients. This happens on import for 'cpu', 'wasm', 'webgl', 'webgpu' and
 * 'tensorflow'; call it for a backend under another name, or one whose kernels were unregistered.
 *
 * @param options.backends Names as tf.setBackend takes them. Default: the five above.
 * @throws Error when `backends` is not an array of non-empty strings, or for an unknown option.
 *
 * ```js
 * tfla.register({backends: ['rn-webgl']});
 * ```
 */
export function register(options: {backends?: string[]} = {}): void {
  checkOptions('register', options, ['backends']);
  const {backends = [...own.keys()]} = options;
  check(
    Array.isArray(backends) && backends.every((name) => typeof name === 'string' && name !== ''),
    'register',
    () => `expected backends to be an array of backend names; got ${show(backends)}.`,
  );
  backends.forEach(registerFor);
}
