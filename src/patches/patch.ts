/** What all patches share: they apply once, and their undo restores exactly what was there before. */
import * as tf from '@tensorflow/tfjs-core';

/** Takes a patch back. Calling it again does nothing. */
export type Undo = () => void;

/**
 * Makes a patch of `apply`. While it is applied, calling it again changes nothing and returns the same undo; so one
 * call of undo takes the patch back, whoever else applied it. `isApplied` answers for a `name`.
 */
export function patch(apply: () => Undo, name?: string): () => Undo {
  let applied: Undo | null = null;
  return () => {
    if (applied === null) {
      const restore = apply();
      const undo = () => {
        if (applied === undo) {
          applied = null;
          active.delete(name);
          restore();
        }
      };
      applied = undo;
      active.add(name);
    }
    return applied;
  };
}

const active = new Set<string | undefined>();

/** Whether the patch of that name is in force now. By name, so that asking does not bring the patch into a bundle. */
export const isApplied = (name: string): boolean => active.has(name);

/** One undo for several; the last applied is undone first. */
export function together(undos: Undo[]): Undo {
  return () => {
    for (const undo of [...undos].reverse()) {
      undo();
    }
  };
}

/** Puts a gradient in place of the one there is, if any. */
export function replaceGradient(config: tf.GradConfig): Undo {
  const before = tf.getGradient(config.kernelName);
  tf.registerGradient(config);
  return () => {
    if (tf.getGradient(config.kernelName) !== config) {
      return; // somebody else registered another since
    }
    if (before == null) {
      tf.unregisterGradient(config.kernelName);
    } else {
      tf.registerGradient(before);
    }
  };
}

/** Puts a kernel in place of the one there is, if any. */
export function replaceKernel(config: tf.KernelConfig): Undo {
  const {kernelName, backendName} = config;
  const before = tf.getKernel(kernelName, backendName);
  if (before != null) {
    tf.unregisterKernel(kernelName, backendName); // registering over it would warn
  }
  tf.registerKernel(config);
  return () => {
    if (tf.getKernel(kernelName, backendName) !== config) {
      return;
    }
    tf.unregisterKernel(kernelName, backendName);
    if (before != null) {
      tf.registerKernel(before);
    }
  };
}
