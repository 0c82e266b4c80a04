/** What the thread that trains and its workers tell each other. Numbers travel in shared memory. */
import type {io} from '@tensorflow/tfjs-core';

/** Given to a worker when it starts. */
export interface WorkerStart {
  /** Which of the threads this is; the one that trains is number 0. */
  index: number;
  /** How many threads share the micro-batches; number i takes micro-batches i, i + threads, ... of each step. */
  threads: number;
  accumulate: number;
  batchSize: number;
  length: number;
  seed: number;
  /** Of the order of windows. */
  windowSeed: number;
  model: Pick<io.ModelArtifacts, 'modelTopology' | 'weightSpecs' | 'weightData'>;
  /** int32, shared: the training tokens. */
  tokens: SharedArrayBuffer;
  /** float32, shared: all trainable variables, one after another. Read at each step. */
  weights: SharedArrayBuffer;
  /** float32, shared, this worker's: the sums of its gradients, in the same layout. */
  gradients: SharedArrayBuffer;
  /** The parent applied `patches.wasmMatMul`. */
  wasmMatMul: boolean;
}

/** To a worker: compute the gradients of this step from the weights that are in shared memory now. */
export interface WorkerStep {
  step: number;
}

/** From a worker. */
export type WorkerReply =
  | {kind: 'ready'; shapes: number[][]}
  | {kind: 'gradients'; step: number; losses: number[]; present: boolean[]}
  | {kind: 'error'; message: string};
