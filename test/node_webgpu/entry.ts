/** What test/node_webgpu.test.ts runs in a process with a driver: one JSON line per result on stdout. */
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-cpu';
import {generation, models, training} from '../../index';
import {useNodeWebGPU} from '../../node_webgpu';
import {forceSegmentLength} from '../../src/linear_attention/webgpu/plan';
import {inSubset} from '../browser/subset';
import {CASES} from '../conformance/cases';
import {goldenList} from '../conformance/golden_case';
import {runCase, runPoisoned} from '../conformance/run_case';
import g2 from '../golden/g2_causal.json';
import g4 from '../golden/g4_feature_maps.json';
import type {GoldenCase} from '../helpers/golden';

const report = (id: string, result: unknown) => process.stdout.write(`${JSON.stringify({id, result})}\n`);

const files: {[name: string]: unknown} = {g2_causal: g2, g4_feature_maps: g4};
const golden = goldenList((file) => (files[file] as {cases: GoldenCase[]} | undefined)?.cases ?? []);

const deviceErrors: string[] = [];

async function conformance(): Promise<void> {
  for (const testCase of [...CASES, ...golden].filter(inSubset)) {
    const failures: string[] = [];
    try {
      // Whole sequences first, then segments.
      for (const length of [null, 32]) {
        forceSegmentLength(length);
        await runPoisoned(testCase);
        failures.push(...(await runCase(testCase)));
      }
    } catch (error) {
      failures.push(String((error as Error).stack));
    }
    forceSegmentLength(null);
    report(testCase.id, [...failures, ...deviceErrors.splice(0)]);
  }
}

/** Losses of a few steps, and a continuation by the trained model. */
async function train(): Promise<{losses: number[]; ids: number[]; leaked: number}> {
  const tokens = Int32Array.from({length: 400}, (_, i) => (i * i + 1) % 7);
  const model = models.transformer({vocabSize: 7, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
  const before = tf.memory().numTensors;
  const {history} = await training.train(model, tokens, {
    steps: 4,
    batchSize: 2,
    length: 16,
    learningRate: 0.01,
    seed: 3,
  });
  const ids: number[] = [];
  for await (const id of generation.generate(model, [1, 2, 5], {maxNewTokens: 4, temperature: 0})) {
    ids.push(id as number);
  }
  const leaked = tf.memory().numTensors - before;
  model.dispose();
  return {losses: history.map(({loss}) => loss), ids, leaked};
}

function messageOf(f: () => unknown): string {
  try {
    f();
    return 'nothing thrown';
  } catch (error) {
    return (error as Error).message;
  }
}

async function main(): Promise<void> {
  tf.env().set('IS_TEST', true);
  const gpu = await useNodeWebGPU({onError: ({message}) => deviceErrors.push(message)});
  const again = await useNodeWebGPU();
  report('device', {backend: tf.getBackend(), ...gpu, same: gpu === again});
  await conformance();
  report('training on webgpu', await train());
  report('errors while training', deviceErrors.splice(0));

  const computed = tf.tidy(() => tf.matMul(tf.ones([40, 40]), tf.ones([40, 40])));
  report(
    'synchronous read',
    messageOf(() => computed.dataSync()),
  );
  report('asynchronous read', (await computed.data())[7]);
  computed.dispose();

  // Larger than any buffer may be: the device complains, and nothing throws.
  const {device} = tf.backend() as unknown as {device: GPUDevice};
  device.createBuffer({size: 2 ** 50, usage: GPUBufferUsage.STORAGE});
  await device.queue.onSubmittedWorkDone();
  report('error of the device', deviceErrors.splice(0));

  gpu.dispose();
  report('backend after dispose', tf.findBackendFactory('webgpu') ?? null);
  await tf.setBackend('cpu');
  report('training on cpu', await train());
  report('done', true);
}

void main();
