/** The entry of a worker thread of `training.train`: dist/worker.cjs. */
import {parentPort, workerData} from 'node:worker_threads';
import '@tensorflow/tfjs-backend-wasm';
import '../kernels/wasm';
import '../layers';
import {serveGradients} from '../training/worker_loop';
import type {WorkerStart} from '../training/worker_messages';

if (parentPort !== null) {
  void serveGradients(parentPort, workerData as WorkerStart);
}
