/** Golden g4 through every feature map, in a page: functions on `window` that maps.test.ts calls. */
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-cpu';
import '@tensorflow/tfjs-backend-webgl';
import '@tensorflow/tfjs-backend-webgpu';
import '../../index';
import {mapCases, runMapCase} from '../conformance/map_case';
import g4 from '../golden/g4_feature_maps.json';
import {FLOAT32, HALF} from '../helpers/compare';
import type {GoldenCase} from '../helpers/golden';

const cases = mapCases((g4 as object as {cases: GoldenCase[]}).cases);
const deviceErrors: string[] = [];
let half = false;

/** Chooses the backend of this page, once. */
async function start(backend: string, {halfFloat = false}: {halfFloat?: boolean} = {}): Promise<string> {
  half = halfFloat;
  tf.env().set('IS_TEST', true);
  if (half) {
    tf.env().set('WEBGL_FORCE_F16_TEXTURES', true);
    tf.env().set('WEBGL_RENDER_FLOAT32_ENABLED', false);
  }
  if (!(await tf.setBackend(backend))) {
    throw new Error(`the backend '${backend}' could not be initialised in this browser`);
  }
  await tf.ready();
  const {device} = tf.backend() as {device?: GPUDevice};
  device?.addEventListener('uncapturederror', (event: Event & {error?: {message: string}}) =>
    deviceErrors.push(event.error?.message ?? 'unknown'),
  );
  return tf.getBackend();
}

/** What is wrong with one case, one line each. */
async function runMap(id: string): Promise<string[]> {
  const testCase = cases.find((c) => c.id === id);
  if (testCase === undefined) {
    throw new Error(`there is no case '${id}'`);
  }
  const failures = await runMapCase(testCase, {tolerance: half ? HALF : FLOAT32, outputsOnly: half});
  const {device} = tf.backend() as {device?: GPUDevice};
  await device?.queue.onSubmittedWorkDone();
  return [...failures, ...deviceErrors.splice(0)];
}

Object.assign(globalThis, {start, runMap});
