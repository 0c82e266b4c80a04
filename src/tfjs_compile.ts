/** Compiling without running: the parts of tfjs's GPU backends that do it, read in tfjs 4.22 and guarded. */
import * as tf from '@tensorflow/tfjs-core';

/** What of the webgl backend (first four) and of the webgpu backend is used. */
interface Compiling {
  binaryCache?: {[key: string]: {variablesLocations?: unknown}};
  /** Without the extension programs are complete when they have been made. */
  gpgpu?: {parallelCompilationExtension?: object};
  checkCompletionAsync_?(binary: object): Promise<boolean>;
  getUniformLocations?(): void;
  pipelineCache?: {[key: string]: object};
}

export interface Compilation {
  /** Calls f, which must be synchronous; ops compile what they would run, and their results hold nothing. */
  only(f: () => void): void;
  /** One promise per program that is not compiled yet. */
  pending(): Promise<unknown>[];
  /** To be called when all of them are. Until then the backend must not run anything. */
  finish(): void;
}

/** How this backend compiles ahead, or null where nothing is compiled or this tfjs does it otherwise. */
export function compilationOf(backend: object): Compilation | null {
  const parts = backend as Compiling;
  const {binaryCache, pipelineCache} = parts;
  if (
    typeof binaryCache === 'object' &&
    typeof parts.checkCompletionAsync_ === 'function' &&
    typeof parts.getUniformLocations === 'function'
  ) {
    return {
      only: (f) => withFlag('ENGINE_COMPILE_ONLY', f),
      pending: () =>
        Object.values(binaryCache)
          .filter(({variablesLocations}) => variablesLocations == null)
          .map(async (binary) => {
            if (parts.gpgpu?.parallelCompilationExtension) {
              await parts.checkCompletionAsync_?.(binary);
            }
          }),
      finish: () => parts.getUniformLocations?.(),
    };
  }
  if (typeof pipelineCache === 'object') {
    return {
      only: (f) => withFlag('WEBGPU_ENGINE_COMPILE_ONLY', f),
      pending: () =>
        Object.entries(pipelineCache)
          .filter(([, pipeline]) => pipeline instanceof Promise)
          .map(async ([key, promise]) => {
            // A pipeline that fails is made again when it is used, and reported by the device then.
            delete pipelineCache[key];
            pipelineCache[key] = await promise;
          }),
      finish: () => {},
    };
  }
  return null;
}

function withFlag(flag: string, f: () => void): void {
  const before = tf.env().getBool(flag);
  tf.env().set(flag, true);
  try {
    f();
  } finally {
    tf.env().set(flag, before);
  }
}
