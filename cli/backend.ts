/**
 * Loads the tfjs backend that a command asked for, or the fastest that is there. Backends are optional peers: an absent
 * one is explained.
 */
import * as tf from '@tensorflow/tfjs-core';
import '../kernels/cpu';
import '../kernels/node';
import '../kernels/wasm';
import {hasNative, whyNoNative} from '../src/node/native';
import {nodeBackend} from '../src/tfjs_node';
import {Failure, reason} from './errors';

export const BACKENDS = ['node', 'wasm', 'cpu'] as const;
export type BackendName = (typeof BACKENDS)[number];

/**
 * Backends in the order of their usual speed, and for what. tfjs-node takes longer than wasm to start an operation and
 * less to do it: small models, and single tokens, are faster on wasm (benchmarks/RESULTS.md, training on tfjs-node).
 */
export interface Preference {
  order: readonly BackendName[];
  /** Completes 'usually the fastest'. */
  where: string;
}

/** From this width on a training step on tfjs-node is faster. */
const NODE_WIDTH = 128;

export const fastestTraining = (dModel: number): Preference =>
  dModel < NODE_WIDTH
    ? {order: ['wasm', 'node', 'cpu'], where: `for models below d = ${NODE_WIDTH}`}
    : {order: ['node', 'wasm', 'cpu'], where: `for models from d = ${NODE_WIDTH} on`};

export const FASTEST_WRITING: Preference = {order: ['wasm', 'node', 'cpu'], where: 'token by token'};

interface Backend {
  /** tfjs's name for it. */
  name: string;
  package: string;
  load(): Promise<unknown>;
}

const KNOWN: Record<BackendName, Backend> = {
  node: {
    name: 'tensorflow',
    package: '@tensorflow/tfjs-node',
    load: () => {
      if (Number(process.versions.node.split('.')[0]) >= 23) {
        throw new Error(`tfjs-node 4.22 does not run on Node 23 and later (this is ${process.version})`);
      }
      process.env.TF_CPP_MIN_LOG_LEVEL ??= '2'; // no greetings
      return import('@tensorflow/tfjs-node');
    },
  },
  wasm: {
    name: 'wasm',
    package: '@tensorflow/tfjs-backend-wasm',
    load: () => import('@tensorflow/tfjs-backend-wasm'),
  },
  cpu: {
    name: 'cpu',
    package: '@tensorflow/tfjs-backend-cpu',
    load: () => import('@tensorflow/tfjs-backend-cpu'),
  },
};

/** The command line's name of the backend in use. */
export function backendInUse(): BackendName {
  const found = BACKENDS.find((name) => KNOWN[name].name === tf.getBackend());
  if (found === undefined)
    throw new Failure(`the backend in use, ${tf.getBackend()}, is none of ${BACKENDS.join(', ')}.`);
  return found;
}

/**
 * Makes `wanted` the backend in use, else the first in the order of `preference` that works, and returns a few words for
 * the user: which, and why when it was not asked for.
 */
export async function useBackend(
  wanted: BackendName | undefined,
  {order, where}: Preference = FASTEST_WRITING,
): Promise<string> {
  // tfjs's hints about other backends are not for a program's user.
  tf.enableProdMode();
  if (wanted !== undefined) {
    const fault = await whyNot(wanted);
    if (fault !== null) throw new Failure(`--backend ${wanted}: ${fault}`);
    return described(wanted);
  }
  const faults: string[] = [];
  for (const name of order) {
    const fault = await whyNot(name);
    if (fault === null) {
      const why = faults.length > 0 ? faults.join('; ') : `usually the fastest ${where}`;
      return `${described(name)} (${why}; --backend chooses another)`;
    }
    faults.push(`not ${name}: ${fault}`);
  }
  throw new Failure(`no backend works: ${faults.join('; ')}`);
}

/** Null when the backend is in use now; else why it cannot be. */
async function whyNot(name: BackendName): Promise<string | null> {
  const backend = KNOWN[name];
  try {
    await backend.load();
    if (!(await tf.setBackend(backend.name))) return 'it could not be initialised';
    await tf.ready();
    return null;
  } catch (error) {
    const {code, message} = error as NodeJS.ErrnoException;
    if (code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND')
      return `it is not installed; npm install ${backend.package}`;
    return message?.includes('tfjs_binding.node')
      ? 'its native library is missing; npx tfjs-linear-attention setup-node'
      : reason(error);
  }
}

function described(name: BackendName): string {
  const node = name === 'node' ? nodeBackend(tf.backend()) : null;
  if (node === null) return `backend ${name}`;
  return hasNative(node)
    ? 'backend node with the native attention operations'
    : `backend node without the native attention operations: ${whyNoNative()}`;
}
