/** The training thread's side of `workers`: starts the threads, shares weights and gradients with them, ends them. */
import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {fail, showShape} from '../src/errors';
import {isApplied} from '../src/patches/patch';
import type {Windows} from './data';
import {type GradientSource, microBatchGradients, type StepGradients} from './gradient_source';
import {addGradients} from './gradients';
import {type NodeModule, nodeBuiltin} from './node_builtin';
import type {WorkerReply, WorkerStart} from './worker_messages';

type Thread = InstanceType<NodeModule<'node:worker_threads'>['Worker']>;

export interface WorkerOptions {
  workers: number;
  accumulate: number;
  batchSize: number;
  length: number;
  seed: number;
  windowSeed: number;
  tokens: Int32Array;
}

const FN = 'training.train';
const WHAT = 'the option workers';

/**
 * Micro-batches shared among `workers` threads, this one included: it computes its share while the others compute
 * theirs. Each worker has a replica of the model on the wasm backend.
 */
export async function workerGradients(
  model: LayersModel,
  variables: tf.Variable[],
  windows: Windows,
  options: WorkerOptions,
): Promise<GradientSource> {
  const {Worker} = nodeBuiltin(FN, WHAT, 'node:worker_threads');
  const path = workerPath();
  const backend = tf.getBackend();
  if (backend !== 'wasm') {
    console.warn(
      `${FN}: ${WHAT} starts threads on the wasm backend, and this one is on '${backend}': the numbers of both are added, ` +
        "which agree within rounding. For one backend: tf.setBackend('wasm'), or workers: 1.",
    );
  }
  const floats = variables.reduce((sum, {size}) => sum + size, 0);
  // Field by field: `options` holds more than can be sent to a thread.
  const {workers, tokens, accumulate, batchSize, length, seed, windowSeed} = options;
  const shared = {
    accumulate,
    batchSize,
    length,
    seed,
    windowSeed,
    threads: workers,
    model: await artifactsOf(model),
    tokens: new SharedArrayBuffer(tokens.byteLength),
    weights: new SharedArrayBuffer(floats * 4),
    wasmMatMul: isApplied('wasmMatMul'),
  };
  new Int32Array(shared.tokens).set(tokens);
  const team = Array.from({length: workers - 1}, (_, i) => {
    const gradients = new SharedArrayBuffer(floats * 4);
    const workerData: WorkerStart = {...shared, index: i + 1, gradients};
    return new Member(new Worker(path, {workerData}), gradients);
  });
  const source = new Team(model, variables, windows, options, new Float32Array(shared.weights), team);
  try {
    await source.ready();
  } catch (error) {
    await source.dispose();
    throw error;
  }
  return source;
}

/** The built file beside this code; when this code runs from its sources, the one of the last build. */
function workerPath(): string {
  const fs = nodeBuiltin(FN, WHAT, 'node:fs');
  const {join} = nodeBuiltin(FN, WHAT, 'node:path');
  const here = typeof __dirname === 'string' ? __dirname : '';
  const found = [join(here, '..', 'worker.cjs'), join(here, '..', 'dist', 'worker.cjs')].find((path) =>
    fs.existsSync(path),
  );
  return (
    found ??
    fail(
      FN,
      `${WHAT} needs the file worker.cjs beside the package's code; keep the package out of bundles for Node.`,
    )
  );
}

async function artifactsOf(model: LayersModel): Promise<WorkerStart['model']> {
  let found: WorkerStart['model'] = {};
  await model.save(
    tf.io.withSaveHandler(async ({modelTopology, weightSpecs, weightData}) => {
      found = {modelTopology, weightSpecs, weightData};
      return {modelArtifactsInfo: {dateSaved: new Date(), modelTopologyType: 'JSON'}};
    }),
  );
  return found;
}

/** One worker thread, and the promise of its next reply. */
class Member {
  private settle: {resolve: (reply: WorkerReply) => void; reject: (error: Error) => void} | null = null;
  private queued: WorkerReply | null = null;
  private broken: Error | null = null;

  constructor(
    readonly thread: Thread,
    readonly gradients: SharedArrayBuffer,
  ) {
    thread.on('message', (reply: WorkerReply) => {
      if (reply.kind === 'error') {
        this.break(reply.message);
      } else if (this.settle === null) {
        this.queued = reply;
      } else {
        this.settle.resolve(reply);
        this.settle = null;
      }
    });
    thread.on('error', (error: Error) => this.break(error.message));
    thread.on('exit', (code: number) => this.break(`it ended with code ${code}`));
  }

  /** The first reason counts: an exit follows every error. */
  private break(message: string): void {
    this.broken ??= new Error(
      `${FN}: a worker failed: ${message}. A worker knows the layers of tfjs and of this package; own classes and ` +
        'feature maps need workers: 1.',
    );
    this.settle?.reject(this.broken);
    this.settle = null;
  }

  next(): Promise<WorkerReply> {
    const {queued} = this;
    if (queued !== null) {
      this.queued = null;
      return Promise.resolve(queued);
    }
    if (this.broken !== null) {
      return Promise.reject(this.broken);
    }
    return new Promise((resolve, reject) => {
      this.settle = {resolve, reject};
    });
  }
}

class Team implements GradientSource {
  constructor(
    private readonly model: LayersModel,
    private readonly variables: tf.Variable[],
    private readonly windows: Windows,
    private readonly options: WorkerOptions,
    private readonly weights: Float32Array,
    private readonly members: Member[],
  ) {}

  /** Waits until all have their replica, and checks that its variables are in the model's order. */
  async ready(): Promise<void> {
    const own = this.variables.map(({shape}) => showShape(shape)).join(' ');
    for (const reply of await Promise.all(this.members.map((member) => member.next()))) {
      if (reply.kind !== 'ready' || reply.shapes.map(showShape).join(' ') !== own) {
        fail(FN, 'a worker made another model than this one; train it with workers: 1.');
      }
    }
  }

  async gradients(step: number): Promise<StepGradients> {
    const {accumulate, batchSize, seed, workers} = this.options;
    this.shareWeights();
    for (const {thread} of this.members) {
      thread.postMessage({step});
    }
    // Listened to before this thread is busy, so that a failure meanwhile is not an unhandled one.
    const replies = Promise.all(this.members.map((member) => member.next()));
    replies.catch(() => {});
    const losses: number[] = [];
    let sums: (tf.Tensor | null)[] | null = null;
    try {
      for (let i = 0; i < accumulate; i += workers) {
        const micro = step * accumulate + i;
        const {loss, gradients} = microBatchGradients(
          this.model,
          this.variables,
          this.windows,
          micro,
          batchSize,
          seed,
        );
        sums = addGradients(sums, gradients);
        losses.push((await loss.data())[0]);
        loss.dispose();
      }
      for (const [i, reply] of (await replies).entries()) {
        if (reply.kind !== 'gradients' || reply.step !== step) {
          fail(FN, 'a worker answered another step than the one it was asked for.');
        }
        losses.push(...reply.losses);
        sums = addGradients(sums, this.read(this.members[i], reply.present));
      }
    } catch (error) {
      tf.dispose((sums ?? []).filter((sum) => sum !== null));
      throw error;
    }
    return {losses, sums: sums ?? []};
  }

  private shareWeights(): void {
    let offset = 0;
    for (const variable of this.variables) {
      this.weights.set(variable.dataSync(), offset);
      offset += variable.size;
    }
  }

  private read({gradients}: Member, present: boolean[]): (tf.Tensor | null)[] {
    const values = new Float32Array(gradients);
    let offset = 0;
    return this.variables.map(({shape, size}, i) => {
      const part = present[i] ? tf.tensor(values.slice(offset, offset + size), shape, 'float32') : null;
      offset += size;
      return part;
    });
  }

  async dispose(): Promise<void> {
    await Promise.all(this.members.map(({thread}) => thread.terminate()));
  }
}
