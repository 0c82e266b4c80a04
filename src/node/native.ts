/**
 * The native TensorFlow operations (native/linear_attention.cc), which the set-up script builds into the user's cache
 * folder. They are loaded into the process that tfjs-node runs in, where TensorFlow finds them by name.
 */
import * as tf from '@tensorflow/tfjs-core';
import {type NodeBackend, rememberAttributeNames} from '../tfjs_node';
import {NATIVE_TAG} from './native_tag';

/** The names under which TensorFlow knows them. */
export const FORWARD = `TflaForward${NATIVE_TAG}`;
export const BACKWARD = `TflaBackward${NATIVE_TAG}`;
export const STEP = `TflaStep${NATIVE_TAG}`;

/** Versions of TensorFlow whose C interface for operations is known to work: from 2.7 (2.4 crashes) to 2.18. */
const MINORS = [7, 18];

let disabled = false;
let why: string | null | undefined;
let said = false;

/** Makes every later call take the composed form, as where nothing was built. For tests and comparisons. */
export function disableNative(value: boolean): void {
  disabled = value;
}

/** The shared object, as Node sees it. */
interface Addon {
  /** Calls the function while no other thread of the process is in here. */
  alone(f: () => void): void;
}

/**
 * Loads the operations, once a thread, and says nothing. To be called as soon as the backend is there: what tfjs-node does
 * not guard against threads is put right here, before other operations run.
 */
export function prepareNative(backend: NodeBackend): void {
  if (why !== undefined) {
    return;
  }
  const loaded = load(backend);
  why = typeof loaded === 'string' ? loaded : null;
  const remember = () => rememberAttributeNames(backend);
  if (typeof loaded !== 'string') {
    loaded.alone(remember);
  } else if (process.getBuiltinModule('node:worker_threads').isMainThread) {
    // Without a lock there is no more than this: the main thread mostly comes first.
    remember();
  }
}

/** True where the native operations run. What hinders is said once, when this is first asked. */
export function hasNative(backend: NodeBackend): boolean {
  prepareNative(backend);
  if (typeof why === 'string' && !said) {
    said = true;
    if (!tf.env().getBool('PROD') && !tf.env().getBool('IS_TEST')) {
      console.warn(
        `tfjs-linear-attention: linear attention runs in TensorFlow's own operations, about 2.5 times slower than in the native one: ${why}`,
      );
    }
  }
  return why === null && !disabled;
}

/** Why the native operations cannot be used, or null; for whoever wants to know after the first call. */
export function whyNoNative(): string | null {
  return disabled ? 'they are disabled.' : (why ?? null);
}

/** The addon, or why there is none. */
function load({binding, isUsingGpuDevice}: NodeBackend): Addon | string {
  const [major, minor] = binding.TF_Version.split('.').map(Number);
  if (major !== 2 || minor < MINORS[0] || minor > MINORS[1]) {
    return `they are known to work with TensorFlow 2.${MINORS[0]} to 2.${MINORS[1]}; this is ${binding.TF_Version}.`;
  }
  if (isUsingGpuDevice) {
    return 'they run on the processor, and this TensorFlow uses a GPU.';
  }
  const {env} = process;
  const wanted = env.TFJS_LINEAR_ATTENTION_NATIVE;
  if (wanted === 'off') {
    return 'TFJS_LINEAR_ATTENTION_NATIVE=off.';
  }
  const path = wanted ?? defaultPath(env);
  if (!process.getBuiltinModule('node:fs').existsSync(path)) {
    return 'it is not built; npx tfjs-linear-attention setup-node builds it.';
  }
  try {
    const module = {exports: {} as Partial<Addon>};
    process.dlopen(module, path);
    const {alone} = module.exports;
    return alone === undefined ? `${path} is another library, or of another version.` : {alone};
  } catch (error) {
    return `it could not be loaded: ${(error as Error).message}`;
  }
}

/** Where the set-up script puts them (scripts/node/cache.mjs). */
function defaultPath(env: NodeJS.ProcessEnv): string {
  const {isAbsolute, join} = process.getBuiltinModule('node:path');
  const base = env.XDG_CACHE_HOME ?? '';
  const caches = isAbsolute(base) ? base : join(process.getBuiltinModule('node:os').homedir(), '.cache');
  return join(caches, 'tfjs-linear-attention', `linear-attention-${NATIVE_TAG}.node`);
}
