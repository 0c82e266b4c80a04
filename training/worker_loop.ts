/** The worker's side of `workers`: a replica of the model that answers each step with the sums of its gradients. */
import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, loadLayersModel} from '@tensorflow/tfjs-layers';
import * as patches from '../src/patches';
import {trainableVariables} from '../src/tfjs';
import {Windows} from './data';
import {microBatchGradients} from './gradient_source';
import {addGradients} from './gradients';
import type {WorkerReply, WorkerStart, WorkerStep} from './worker_messages';

/** The part of Node's MessagePort that is used. */
interface Port {
  postMessage(message: WorkerReply): void;
  on(event: 'message', listener: (message: WorkerStep) => void): unknown;
}

/** Runs until the thread is terminated. The wasm backend must have been imported. */
export async function serveGradients(port: Port, start: WorkerStart): Promise<void> {
  const answer = async (reply: () => WorkerReply | Promise<WorkerReply>): Promise<void> => {
    try {
      port.postMessage(await reply());
    } catch (error) {
      port.postMessage({kind: 'error', message: (error as Error).message});
    }
  };
  await answer(async () => {
    tf.enableProdMode();
    if (!(await tf.setBackend('wasm'))) {
      throw new Error('the wasm backend could not be initialised');
    }
    patches.wasmTraining();
    if (start.wasmMatMul) {
      patches.wasmMatMul();
    }
    const model = await loadLayersModel(tf.io.fromMemory(start.model));
    const variables = trainableVariables(model);
    const windows = new Windows(new Int32Array(start.tokens), start.length, start.windowSeed);
    port.on('message', ({step}) => answer(() => computeStep(model, variables, windows, start, step)));
    return {kind: 'ready', shapes: variables.map(({shape}) => shape)};
  });
}

function computeStep(
  model: LayersModel,
  variables: tf.Variable[],
  windows: Windows,
  start: WorkerStart,
  step: number,
): WorkerReply {
  readVariables(variables, new Float32Array(start.weights));
  const {accumulate, batchSize, seed, index, threads} = start;
  const losses: number[] = [];
  let sums: (tf.Tensor | null)[] | null = null;
  for (let i = index; i < accumulate; i += threads) {
    const micro = step * accumulate + i;
    const {loss, gradients} = microBatchGradients(model, variables, windows, micro, batchSize, seed);
    sums = addGradients(sums, gradients);
    losses.push(loss.dataSync()[0]);
    loss.dispose();
  }
  const shared = new Float32Array(start.gradients);
  let offset = 0;
  const present = variables.map(({size}, i) => {
    const sum = sums?.[i] ?? null;
    if (sum !== null) {
      shared.set(sum.dataSync(), offset);
      sum.dispose();
    }
    offset += size;
    return sum !== null;
  });
  return {kind: 'gradients', step, losses, present};
}

/** Sets the variables to values that stand one after another. */
function readVariables(variables: tf.Variable[], values: Float32Array): void {
  tf.tidy(() => {
    let offset = 0;
    for (const variable of variables) {
      const part = values.slice(offset, offset + variable.size);
      variable.assign(tf.tensor(part, variable.shape, 'float32'));
      offset += variable.size;
    }
  });
}
