/** Feature maps: the pointwise ones, maps of one's own through the ops, names that survive saving. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {
  type FeatureMap,
  featureMaps,
  linearAttention,
  linearAttentionStep,
  registerFeatureMap,
  zeroState,
} from '../index';
import type {FeatureMapContext} from '../ops';
import {featureMapFromConfig} from '../ops/feature_maps';
import type {PointwiseMap} from '../src/pointwise';
import {register} from '../src/register';
import {survivesSaving} from '../src/saved_names';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32, goldenDifference} from './helpers/compare';
import {goldenCases} from './helpers/golden';
import {take} from './helpers/numbers';

const X = [-30, -12, -1, -0.5, 0, 0.5, 2, 40];

describeOnBackends('the feature map', () => {
  test.each<[PointwiseMap, (x: number) => number]>([
    ['elu', (x) => (x > 0 ? x + 1 : Math.exp(x))],
    ['relu', (x) => Math.max(x, 0)],
    ['squaredRelu', (x) => Math.max(x, 0) ** 2],
    ['exp', Math.exp],
    ['identity', (x) => x],
  ])('%s is its formula, for queries and keys, with as many features as inputs', async (name, phi) => {
    await expectNoLeak(() => {
      const map = featureMaps[name]();
      const x = tf.tensor(X);
      for (const got of [map.queries(x), map.keys(x)]) {
        expect(got).not.toBe(x);
        expect(difference(take(got), X.map(phi), FLOAT32)).toBeNull();
      }
      expect([map.name, map.dim(7), map.getConfig()]).toEqual([name, 7, {}]);
      x.dispose();
    });
  });

  test.each([
    ['elu_plus_one', 'elu'],
    ['relu', 'relu'],
    ['squared_relu', 'squaredRelu'],
    ['exp', 'exp'],
  ] as const)('golden g4 %s gives these features', (golden, name) => {
    const {inputs, outputs} = goldenCases('g4_feature_maps.json').find((c) => c.name === golden)!;
    for (const [side, input, output] of [
      ['queries', inputs.q, outputs.phi_q],
      ['keys', inputs.k, outputs.phi_k],
    ] as const) {
      if (output !== undefined) {
        const got = tf.tidy(() => featureMaps[name]()[side](tf.tensor(input.data, input.shape)).dataSync());
        expect(goldenDifference(got, output.data, 'output')).toBeNull();
      }
    }
  });

  test('is far from 0 where elu(x) + 1 would cancel: exp(-12) keeps its digits', () => {
    const [got] = tf.tidy(() =>
      featureMaps
        .elu()
        .queries(tf.tensor([-12]))
        .dataSync(),
    );
    expect(Math.abs(got / Math.exp(-12) - 1)).toBeLessThan(1e-6);
  });

  test('may be given by name or as a map, with the same result', () => {
    tf.tidy(() => {
      const x = tf.tensor([1, -2, 0.5, 3, 0, -1], [1, 3, 2]);
      const byName = linearAttention(x, x, x, {featureMap: 'squaredRelu'});
      const byMap = linearAttention(x, x, x, {featureMap: featureMaps.squaredRelu()});
      expect(byMap.dataSync()).toEqual(byName.dataSync());
    });
  });
});

/** The relu map without saying that it is pointwise, and the contexts that it was given. */
function recordingMap(): {
  map: FeatureMap;
  contexts: (FeatureMapContext | undefined)[];
  masks: number[][];
} {
  const contexts: (FeatureMapContext | undefined)[] = [];
  const masks: number[][] = [];
  const apply = (x: tf.Tensor, context?: FeatureMapContext) => {
    contexts.push(context);
    masks.push(Array.from(context?.mask?.dataSync() ?? []));
    return tf.relu(x);
  };
  return {
    contexts,
    masks,
    map: {name: 'recording', dim: (r) => r, queries: apply, keys: apply, getConfig: () => ({})},
  };
}

describeOnBackends('a feature map of your own', () => {
  test('is applied before the kernel, told its axes, offset and mask, and never sees what is masked', () => {
    tf.tidy(() => {
      const {map, contexts, masks} = recordingMap();
      const q = tf.randomUniform([2, 5, 3, 4], 0, 1, 'float32', 1);
      const v = tf.randomUniform([2, 5, 3, 2], 0, 1, 'float32', 2);
      const keep = tf.tensor([1, 1, 0, 1, 1, 0, 1, 1, 1, 1], [2, 5]);
      const bad = tf.cast(tf.sub(1, tf.reshape(keep, [2, 5, 1, 1])), 'bool');
      const k = tf.where(tf.tile(bad, [1, 1, 3, 4]), tf.fill([2, 5, 3, 4], Number.NaN), q);
      const options = {mask: keep, dataFormat: 'BNHD' as const, causal: true};
      const own = linearAttention(q, k, v, {...options, featureMap: map, offset: 7});
      const fused = linearAttention(q, k, v, {...options, featureMap: 'relu'});
      expect(difference(own.dataSync(), fused.dataSync(), FLOAT32)).toBeNull();
      expect(contexts).toHaveLength(2);
      for (const context of contexts) {
        expect(context).toMatchObject({sequenceAxis: 1, headAxis: 2, offset: 7});
      }
      const kept = [1, 1, 0, 1, 1, 0, 1, 1, 1, 1];
      expect(masks).toEqual([kept, kept]);
    });
  });

  test('may have another number of features, an eps and weights; gradients reach the weights', () => {
    tf.tidy(() => {
      const map: FeatureMap = {
        name: 'twofold',
        eps: 0,
        dim: (r) => 2 * r,
        weights: (r, numHeads) => [
          {name: 'w', shape: [numHeads, 1, r], initializer: 'ones', trainable: true},
        ],
        queries: (x, ctx) => tf.concat([tf.exp(tf.mul(x, ctx!.weights!.w)), tf.exp(tf.neg(x))], 3),
        keys: (x, ctx) => tf.concat([tf.exp(tf.mul(x, ctx!.weights!.w)), tf.exp(tf.neg(x))], 3),
        getConfig: () => ({}),
      };
      const x = tf.tensor([0.5, -1, 0.2, 0.3, 1, -0.1, 0.4, 0.6], [1, 2, 2, 2]);
      const w = tf.tensor([1, 0.5, -1, 0.2], [2, 1, 2]);
      const options = {featureMap: map, causal: true};
      const {state} = linearAttention(x, x, x, {...options, featureMapWeights: {w}, returnState: true});
      expect([state.s.shape, state.z.shape]).toEqual([
        [1, 2, 4, 2],
        [1, 2, 4],
      ]);
      const zeros = zeroState({batchSize: 1, numHeads: 2, keyDim: 2, valueDim: 2, featureMap: map});
      expect(zeros.s.shape).toEqual(state.s.shape);
      const loss = (weights: tf.Tensor) =>
        tf.sum(tf.square(linearAttention(x, x, x, {...options, featureMapWeights: {w: weights}})));
      const gradient = tf.grad(loss)(w).dataSync();
      const step = 1e-2;
      const at = (delta: number) => loss(tf.add(w, tf.tensor([delta, 0, 0, 0], [2, 1, 2]))).dataSync()[0];
      expect(gradient[0]).toBeCloseTo((at(step) - at(-step)) / (2 * step), 2);
      expect(Math.abs(gradient[0])).toBeGreaterThan(1e-3);
    });
  });

  test('works step by step, with the offset of each token', () => {
    tf.tidy(() => {
      const {map, contexts} = recordingMap();
      const state = zeroState({batchSize: 1, numHeads: 1, keyDim: 2, valueDim: 2, featureMap: map});
      linearAttentionStep([[[1, 2]]], [[[1, 2]]], [[[3, 4]]], state, {featureMap: map, offset: 41});
      expect(contexts.map((context) => [context!.offset, context!.sequenceAxis])).toEqual([
        [41, 2],
        [41, 2],
      ]);
    });
  });

  test('can be registered, used by name and made again from its config', () => {
    const shifted = ({shift = 1} = {}): FeatureMap => ({
      name: 'shiftedRelu',
      dim: (r) => r,
      queries: (x) => tf.relu(tf.add(x, shift)),
      keys: (x) => tf.relu(tf.add(x, shift)),
      getConfig: () => ({shift}),
    });
    const used = () =>
      tf.tidy(() =>
        linearAttention([[[0]], [[0]]], [[[0]], [[1]]], [[[5]], [[7]]], {
          featureMap: 'shiftedRelu',
        }).dataSync(),
      );
    if (tf.getBackend() === 'cpu') {
      expect(used).toThrow("got 'shiftedRelu'");
      registerFeatureMap('shiftedRelu', shifted);
    }
    expect(used()[1]).toBeCloseTo(7, 4);
    expect(featureMapFromConfig('shiftedRelu', {shift: 3}).getConfig()).toEqual({shift: 3});
    expect(() => featureMapFromConfig('unheardOf')).toThrow(
      "featureMapFromConfig: feature map 'unheardOf' is not registered; call registerFeatureMap('unheardOf', factory) before loading.",
    );
  });
});

describe('names', () => {
  class NameHolder extends tfl.layers.Layer {
    static className = 'NameHolder';
    constructor(private readonly args: {key: string}) {
      super({name: 'holder'});
    }
    override getConfig() {
      return {...super.getConfig(), held: this.args.key, [this.args.key]: 1};
    }
  }

  test.each([
    'elu',
    'squaredRelu',
    'taylor2',
    'cosFormer',
    'dpfp',
    'nuA',
    'a1B2',
    'my_map',
    'MyMap',
    'x_1',
    'aBC',
    'favorHTTP',
  ])('survivesSaving says what tfjs does to %s', (name) => {
    const model = tfl.sequential({layers: [tfl.layers.dense({units: 1, inputShape: [1]})]});
    const saved = new NameHolder({key: name});
    let loaded: {[key: string]: unknown} = {};
    class Loader extends NameHolder {
      static override className = 'NameHolder';
      static override fromConfig<T extends tf.serialization.Serializable>(
        cls: tf.serialization.SerializableConstructor<T>,
        config: tf.serialization.ConfigDict,
      ): T {
        loaded = config;
        return new cls({key: name});
      }
    }
    tf.serialization.registerClass(Loader);
    model.add(saved);
    const json = model.toJSON(null, false) as object;
    expect(json).toBeDefined();
    return tfl.models.modelFromJSON({modelTopology: json} as tf.io.ModelJSON).then(() => {
      expect(loaded.held === name && name in loaded).toBe(survivesSaving(name));
    });
  });
});

describe('register', () => {
  test('gives a backend of another name the kernels, once', () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => {});
    try {
      register({backends: ['late-backend']});
      register({backends: ['late-backend']});
      register();
      expect(tf.getKernel('LinearAttention', 'late-backend')).toBeDefined();
      expect(tf.getKernel('LinearAttentionGrad', 'late-backend')).toBeDefined();
      expect(warn).not.toHaveBeenCalled();
    } finally {
      warn.mockRestore();
    }
  });

  test('is not needed for a backend that is made later: the op finds out', async () => {
    await tf.setBackend('cpu');
    tf.registerBackend('cpu-by-another-name', () => {
      const cpu = tf.findBackendFactory('cpu')!() as tf.KernelBackend;
      return cpu;
    });
    tf.copyRegisteredKernels('cpu', 'cpu-by-another-name');
    for (const kernel of ['LinearAttention', 'LinearAttentionGrad']) {
      tf.unregisterKernel(kernel, 'cpu-by-another-name');
    }
    await tf.setBackend('cpu-by-another-name');
    const output = tf.tidy(() => linearAttention([[[1]]], [[[1]]], [[[3]]]).dataSync());
    expect(output[0]).toBeCloseTo(3, 4);
    await tf.setBackend('cpu');
    tf.removeBackend('cpu-by-another-name');
  });
});
