/** Every case on every backend that runs in Node: the op with the backend's own kernels, and the composed form. */
import * as tf from '@tensorflow/tfjs-core';
import {attrsOf, LinearAttentionGrad} from '../src/linear_attention/spec';
import {inSubset} from './browser/subset';
import {CASES, type ConformanceCase} from './conformance/cases';
import {goldenList} from './conformance/golden_case';
import {runCase} from './conformance/run_case';
import {describeOnBackends} from './helpers/backends';
import {goldenCases} from './helpers/golden';

const GOLDEN: ConformanceCase[] = goldenList((file) => goldenCases(`${file}.json`));

describeOnBackends('linearAttention', () => {
  // Each shape twice, in both orders: a result may not depend on what ran before.
  test.each([...CASES, ...GOLDEN].map((c) => [c.id, c] as const))('%s', async (_, testCase) => {
    expect(await runCase(testCase)).toEqual([]);
  });
  test('every case again in the reverse order', async () => {
    for (const testCase of [...CASES, ...GOLDEN].reverse()) {
      expect([testCase.id, ...(await runCase(testCase))]).toEqual([testCase.id]);
    }
  });
});

describeOnBackends('the composed form', () => {
  test.each([...CASES, ...GOLDEN].map((c) => [c.id, c] as const))('%s', async (_, testCase) => {
    expect(await runCase(testCase, {form: 'composed'})).toEqual([]);
  });
});

describeOnBackends('the composed form, cut in halves', () => {
  // The browsers' subset covers every option. Where a call is cut does not depend on its widths, which take the time.
  const small = [...CASES, ...GOLDEN].filter((c) => inSubset(c) && c.dims.r * c.dims.d <= 200);
  test.each(small.map((c) => [c.id, c] as const))('%s', async (_, testCase) => {
    expect(await runCase(testCase, {form: 'halves'})).toEqual([]);
  });
}, ['cpu']);

describe('the plain-JavaScript kernel', () => {
  test.each([...CASES, ...GOLDEN].map((c) => [c.id, c] as const))('%s', async (_, testCase) => {
    expect(await runCase(testCase, {form: 'plain'})).toEqual([]);
  });
});

describeOnBackends('the golden check', (backend) => {
  const golden = GOLDEN.find(({id}) => id === 'golden g2 init state norm statecot') as ConformanceCase;

  test.each([
    [0, 'dq'],
    [1, 'dk'],
    [2, 'dv'],
    [3, 'ds'],
    [4, 'dz'],
  ] as const)(
    'fails when kernel output %i (%s) is off by 1e-3 of its maximum in one element',
    async (index, name) => {
      const config = tf.getKernel(LinearAttentionGrad, backend) as tf.KernelConfig;
      const replace = (kernelFunc: tf.KernelFunc) => {
        tf.unregisterKernel(LinearAttentionGrad, backend);
        tf.registerKernel({...config, kernelFunc});
      };
      replace((args) => {
        expect(attrsOf(args.attrs).hasState).toBe(true);
        return tf.tidy(() => {
          const outputs = (config.kernelFunc(args) as tf.TensorInfo[]).map((x) =>
            x instanceof tf.Tensor ? x : tf.engine().makeTensorFromTensorInfo(x),
          );
          const values = outputs[index].dataSync().slice() as Float32Array;
          const largest = values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
          values[values.length >> 1] += 1e-3 * largest;
          outputs[index] = tf.tensor(values, outputs[index].shape);
          return outputs;
        });
      });
      try {
        const failures = await runCase(golden);
        expect(failures).toHaveLength(1);
        expect(failures[0]).toMatch(new RegExp(`^${name}: element `));
      } finally {
        replace(config.kernelFunc);
      }
      expect(await runCase(golden)).toEqual([]);
    },
  );
});
