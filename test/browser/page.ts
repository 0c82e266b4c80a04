/**
 * What the browser suites run inside a page: the package from its sources and tfjs's backends, with functions on
 * `window` that are called from Node.
 */
import './gpu_counts';
import * as tf from '@tensorflow/tfjs-core';
import '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-cpu';
import {setWasmPaths} from '@tensorflow/tfjs-backend-wasm';
import '@tensorflow/tfjs-backend-webgl';
import '@tensorflow/tfjs-backend-webgpu';
import '../../index';
import {forceSegmentLength} from '../../src/linear_attention/webgpu/plan';
import {CASES, type ConformanceCase} from '../conformance/cases';
import {goldenList} from '../conformance/golden_case';
import {runCase, runPoisoned} from '../conformance/run_case';
import g1 from '../golden/g1_noncausal.json';
import g2 from '../golden/g2_causal.json';
import g3 from '../golden/g3_causal_mask.json';
import g4 from '../golden/g4_feature_maps.json';
import g7 from '../golden/g7_rotary.json';
import {FLOAT32, HALF} from '../helpers/compare';
import type {GoldenCase} from '../helpers/golden';
import './kernel_checks';
import './texture_checks';
import './warmup_checks';

export interface StartOptions {
  /** Textures of half floats on webgl, as on most phones. */
  halfFloat?: boolean;
  /** As if the browser had WebGL 1 only. */
  webgl1?: boolean;
}

export interface PageRunOptions {
  form?: 'op' | 'composed';
  /** Runs the case with NaN for every input first, so that recycled buffers hold NaN. */
  poisoned?: boolean;
  /** Of the webgpu kernels, instead of what their rule gives. */
  segmentLength?: number;
}

const files: {[name: string]: unknown} = {
  g1_noncausal: g1,
  g2_causal: g2,
  g3_causal_mask: g3,
  g4_feature_maps: g4,
  g7_rotary: g7,
};
const golden = goldenList((file) => (files[file] as {cases: GoldenCase[]}).cases);
const cases = new Map<string, ConformanceCase>([...CASES, ...golden].map((c) => [c.id, c]));

/** What the WebGPU device complained about since it was last asked: it throws nothing. */
const deviceErrors: string[] = [];
let half = false;

/** Chooses the backend of this page, once, before anything runs. Returns what will run. */
async function start(backend: string, options: StartOptions = {}): Promise<string> {
  half = options.halfFloat ?? false;
  setWasmPaths('/');
  tf.env().set('IS_TEST', true);
  if (half) {
    tf.env().set('WEBGL_FORCE_F16_TEXTURES', true);
    tf.env().set('WEBGL_RENDER_FLOAT32_ENABLED', false);
  }
  if (options.webgl1) {
    tf.env().set('WEBGL_VERSION', 1);
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
async function runCases(id: string, options: PageRunOptions = {}): Promise<string[]> {
  const {form = 'op', poisoned = false, segmentLength = null} = options;
  const testCase = cases.get(id);
  if (testCase === undefined) {
    throw new Error(`there is no case '${id}'`);
  }
  forceSegmentLength(segmentLength);
  if (poisoned) {
    await runPoisoned(testCase, {form, outputsOnly: half});
  }
  const tolerance = half ? HALF : FLOAT32;
  const failures = await runCase(testCase, {form, tolerance, outputsOnly: half});
  return [...failures, ...(await takeDeviceErrors())].map((line) => `${id} [${tf.getBackend()}] ${line}`);
}

/** Errors of the WebGPU device arrive after the work that caused them has been waited for. */
async function takeDeviceErrors(): Promise<string[]> {
  const {device} = tf.backend() as {device?: GPUDevice};
  await device?.queue.onSubmittedWorkDone();
  return deviceErrors.splice(0).map((message) => `WebGPU: ${message}`);
}

Object.assign(globalThis, {start, runCases, takeDeviceErrors});
