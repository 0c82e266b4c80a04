/** Loads the tfjs backend that a command asked for. Backends are optional peers: an absent one is explained. */
import * as tf from '@tensorflow/tfjs-core';
import {Failure, reason} from './errors';

export const BACKENDS = ['wasm', 'cpu'] as const;
export type BackendName = (typeof BACKENDS)[number];

const load: Record<BackendName, () => Promise<unknown>> = {
  wasm: () => import('@tensorflow/tfjs-backend-wasm'),
  cpu: () => import('@tensorflow/tfjs-backend-cpu'),
};

export async function useBackend(name: BackendName): Promise<void> {
  // tfjs's hints about other backends are not for a program's user.
  tf.enableProdMode();
  try {
    await load[name]();
    if (!(await tf.setBackend(name))) throw new Error('it could not be initialised');
    await tf.ready();
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'MODULE_NOT_FOUND';
    throw new Failure(
      missing
        ? `--backend ${name}: it is not installed; npm install @tensorflow/tfjs-backend-${name}`
        : `--backend ${name}: ${reason(error)}`,
    );
  }
}
