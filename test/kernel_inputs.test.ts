/** Kernels are handed more than the tensors of tfjs's ops: other kernels give bare infos, whose values somebody else owns. */
import * as tf from '@tensorflow/tfjs-core';
import {composedKernels, composedStep} from '../src/linear_attention/composed_kernels';
import {asAttrs, asInputs, type LinearAttentionAttrs} from '../src/linear_attention/spec';
import {einsumByContraction} from '../src/patches/einsum_gradient';
import {composedRotary} from '../src/rotary_kernels';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {randomNumbers} from './helpers/random_numbers';

type Named = {[name: string]: tf.TensorInfo};

const ATTRS: LinearAttentionAttrs = {
  updateRule: 'linear',
  causal: true,
  featureMap: 'elu',
  normalize: true,
  eps: 1e-6,
  scale: 1,
  dataFormat: 'BHND',
  hasMask: false,
  hasState: true,
};
const made = (shape: number[], seed = 1) =>
  tf.tensor(randomNumbers(tf.util.sizeFromShape(shape), seed), shape);
const bare = ({dataId, shape, dtype}: tf.Tensor): tf.TensorInfo => ({dataId, shape, dtype});

describeOnBackends('a kernel that is handed bare infos', () => {
  const [forward, backward] = composedKernels('cpu').map(({kernelFunc}) => kernelFunc);
  const backend = () => tf.backend();
  const sequences = {
    q: [1, 2, 6, 4],
    k: [1, 2, 6, 4],
    v: [1, 2, 6, 3],
    mask: [1],
    s: [1, 2, 4, 3],
    z: [1, 2, 4],
  };
  const token = {q: [1, 2, 4], k: [1, 2, 4], v: [1, 2, 3], s: [1, 2, 4, 3], z: [1, 2, 4]};
  const CASES: [string, {[name: string]: number[]}, (inputs: Named) => tf.TensorInfo | tf.TensorInfo[]][] = [
    [
      'LinearAttention, composed',
      sequences,
      (inputs) => forward({inputs: asInputs(inputs as never), attrs: asAttrs(ATTRS), backend: backend()}),
    ],
    [
      'LinearAttentionGrad, composed',
      {
        ...sequences,
        output: [1, 2, 6, 3],
        inverse: [1, 2, 6],
        dOutput: [1, 2, 6, 3],
        dS: [1, 2, 4, 3],
        dZ: [1, 2, 4],
      },
      (inputs) => backward({inputs: asInputs(inputs as never), attrs: asAttrs(ATTRS), backend: backend()}),
    ],
    [
      'LinearAttentionStep, composed',
      token,
      (inputs) => composedStep(forward, inputs as never, ATTRS as never, backend() as object),
    ],
    [
      'Rotary, composed',
      {x: [1, 2, 6, 4]},
      (inputs) =>
        composedRotary({
          inputs: inputs as tf.NamedTensorInfoMap,
          attrs: {positions: 0, base: 10000, pairing: 'half', dataFormat: 'BHND', back: false} as never,
          backend: backend(),
        }),
    ],
    [
      'Einsum, patched',
      {0: [3, 4], 1: [4, 5]},
      (inputs) =>
        einsumByContraction({
          inputs: inputs as tf.NamedTensorInfoMap,
          attrs: {equation: 'ij,jk->ik'},
          backend: backend(),
        }),
    ],
  ];

  test.each(CASES)('leaves them to their owner, and nothing else behind: %s', async (_, shapes, run) => {
    await expectNoLeak(() => {
      const tensors = Object.entries(shapes).map(([name, shape], i) => [name, made(shape, i)] as const);
      const infos = Object.fromEntries(tensors.map(([name, x]) => [name, bare(x)]));
      const values = () => tensors.map(([, x]) => Array.from(x.dataSync()));
      const before = values();
      const inputs = tf.memory();
      // Under the engine a kernel's outputs become tensors; here some are tensors already.
      const results = [run(infos)]
        .flat()
        .map((x) => (x instanceof tf.Tensor ? x : tf.engine().makeTensorFromTensorInfo(x)));
      expect(tf.memory().numTensors).toBe(inputs.numTensors + results.length);
      tf.dispose(results);
      expect(values()).toEqual(before);
      expect(tf.memory().numDataBuffers).toBe(inputs.numDataBuffers);
      tf.dispose(tensors.map(([, x]) => x));
    });
  });
});
