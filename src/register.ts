/** Making the kernels known to tfjs: once on import for the backends it has, later for others. */
import * as tf from '@tensorflow/tfjs-core';
import {adamWKernels} from './adam_w';
import {check, checkOptions, show} from './errors';
import {geluCpu} from './gelu/cpu';
import {geluGradient} from './gelu/gradient';
import {Gelu} from './gelu/spec';
import {geluWasm} from './gelu/wasm';
import {layerNormGradient} from './layer_norm/gradient';
import {layerNormKernels} from './layer_norm/kernels';
import {LayerNorm} from './layer_norm/spec';
import {composedKernels} from './linear_attention/composed_kernels';
import {cpuKernels} from './linear_attention/cpu';
import {cpuStepKernel} from './linear_attention/cpu_step';
import {linearAttentionGradient} from './linear_attention/gradient';
import {nodeKernels} from './linear_attention/node';
import {LinearAttention} from './linear_attention/spec';
import {LinearAttentionStep, linearAttentionStepGradient} from './linear_attention/step';
import {wasmKernels} from './linear_attention/wasm';
import {wasmStepKernel} from './linear_attention/wasm_step';
import {webglKernels} from './linear_attention/webgl';
import {webgpuKernels} from './linear_attention/webgpu';

/** A backend that is not imported yet may be named: tfjs keeps kernels by name. */
const KNOWN_BACKENDS = ['cpu', 'wasm', 'webgl', 'webgpu', 'tensorflow'];

/** Kernels written for one backend, by its name. The composed form serves every other. */
const OWN_KERNELS: {[backend: string]: tf.KernelConfig[]} = {
  cpu: [...cpuKernels, cpuStepKernel, ...geluCpu, ...layerNormKernels['cpu'], ...adamWKernels['cpu']],
  wasm: [...wasmKernels, wasmStepKernel, ...geluWasm, ...layerNormKernels['wasm'], ...adamWKernels['wasm']],
  webgl: [...webglKernels],
  webgpu: [...webgpuKernels],
  tensorflow: [...nodeKernels],
};

/** Registers what `backend` lacks. tfjs warns about duplicates, so a kernel that is there stays. */
function registerFor(backend: string): void {
  for (const config of [...(OWN_KERNELS[backend] ?? []), ...composedKernels(backend)]) {
    if (tf.getKernel(config.kernelName, backend) == null) {
      tf.registerKernel(config);
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
  const {backends = KNOWN_BACKENDS} = options;
  check(
    Array.isArray(backends) && backends.every((name) => typeof name === 'string' && name !== ''),
    'register',
    () => `expected backends to be an array of backend names; got ${show(backends)}.`,
  );
  backends.forEach(registerFor);
  if (tf.getGradient(LinearAttention) == null) {
    tf.registerGradient(linearAttentionGradient);
  }
  if (tf.getGradient(LinearAttentionStep) == null) {
    tf.registerGradient(linearAttentionStepGradient);
  }
  if (tf.getGradient(Gelu) == null) {
    tf.registerGradient(geluGradient);
  }
  if (tf.getGradient(LayerNorm) == null) {
    tf.registerGradient(layerNormGradient);
  }
}

register();
