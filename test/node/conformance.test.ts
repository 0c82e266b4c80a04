/**
 * @jest-environment ./test/helpers/one_realm.cjs
 */
/** Every case on tfjs-node: with the native operations, and in TensorFlow's own as where they were not built. */
import * as tf from '@tensorflow/tfjs-core';
import {disableNative, hasNative, whyNoNative} from '../../src/node/native';
import {type NodeBackend, nodeBackend} from '../../src/tfjs_node';
import {CASES, type ConformanceCase} from '../conformance/cases';
import {goldenList} from '../conformance/golden_case';
import {runCase, runPoisoned} from '../conformance/run_case';
import {describeOnBackends} from '../helpers/backends';
import {goldenCases} from '../helpers/golden';

const ALL: ConformanceCase[] = [...CASES, ...goldenList((file) => goldenCases(`${file}.json`))];
const backend = () => nodeBackend(tf.backend()) as NodeBackend;

describeOnBackends('linearAttention by the native operations', () => {
  test('they are there', () => {
    expect([hasNative(backend()), whyNoNative()]).toEqual([true, null]);
  });
  test.each(ALL.map((c) => [c.id, c] as const))('%s', async (_, testCase) => {
    const before = backend().binding.getNumOfTensors();
    expect(await runCase(testCase)).toEqual([]);
    expect(backend().binding.getNumOfTensors()).toBe(before);
  });
  test('every case again in the reverse order, after memory that holds NaN was given back', async () => {
    for (const testCase of [...ALL].reverse()) {
      await runPoisoned(testCase);
      expect([testCase.id, ...(await runCase(testCase))]).toEqual([testCase.id]);
    }
  });
}, ['tensorflow']);

describeOnBackends("linearAttention in TensorFlow's own operations", () => {
  beforeAll(() => disableNative(true));
  afterAll(() => disableNative(false));

  test.each(ALL.map((c) => [c.id, c] as const))('%s', async (_, testCase) => {
    const before = backend().binding.getNumOfTensors();
    expect(await runCase(testCase)).toEqual([]);
    expect(backend().binding.getNumOfTensors()).toBe(before);
  });
  test('every case again in the reverse order', async () => {
    for (const testCase of [...ALL].reverse()) {
      expect([testCase.id, ...(await runCase(testCase))]).toEqual([testCase.id]);
    }
  });
}, ['tensorflow']);
