/**
 * The feature maps of golden g4, features, outputs and gradients, as cases that run on any backend. No test framework
 * and no Node here: the caller reads the file.
 */
import * as tf from '@tensorflow/tfjs-core';
import '../../kernels';
import {type FeatureMap, featureMaps, linearAttention} from '../../ops';
import {difference, FLOAT32, goldenDifference, type Tolerance} from '../helpers/compare';
import type {GoldenCase, GoldenTensor} from '../helpers/golden';

export interface MapCase {
  /** Reads as a sentence. */
  id: string;
  golden: GoldenCase;
  map: FeatureMap;
  /** The golden file's names of the map's weights, which are ours too. */
  weights: string[];
  /** False: queries are scaled row by row, and only outputs and gradients can be compared. */
  comparesQueries: boolean;
}

const favor = (kind: 'positive' | 'hyperbolic' | 'trig' | 'relu', golden: GoldenCase, stabilize: boolean) => {
  const {shape, data} = golden.inputs.omega;
  const rows = Array.from({length: shape[0]}, (_, i) => data.slice(i * shape[1], (i + 1) * shape[1]));
  return featureMaps.favor({kind, projection: rows, stabilize});
};

/** What the file shows of others' formulas, and we do not have. */
export const OTHERS = ['softmax_features', 'softmax_q_exp_k', 'favor_positive_performer_pytorch_default'];

const MAPS: {[name: string]: (golden: GoldenCase, stabilize: boolean) => FeatureMap} = {
  elu_plus_one: () => featureMaps.elu(),
  relu: () => featureMaps.relu(),
  squared_relu: () => featureMaps.squaredRelu(),
  exp: () => featureMaps.exp(),
  taylor2: () => featureMaps.taylor2(),
  rebased: () => featureMaps.rebased(),
  dpfp_nu1: () => featureMaps.dpfp({nu: 1}),
  dpfp_nu2: () => featureMaps.dpfp({nu: 2}),
  dpfp_nu3: () => featureMaps.dpfp({nu: 3}),
  hedgehog_exp: () => featureMaps.hedgehog({form: 'exp'}),
  hedgehog_softmax: () => featureMaps.hedgehog({form: 'softmax'}),
  favor_positive: (golden, stabilize) => favor('positive', golden, stabilize),
  favor_hyperbolic: (golden, stabilize) => favor('hyperbolic', golden, stabilize),
  favor_trig: (golden, stabilize) => favor('trig', golden, stabilize),
  favor_relu_generalized: (golden, stabilize) => favor('relu', golden, stabilize),
  efficient_attention: () => featureMaps.softmax(),
  efficient_attention_masked: () => featureMaps.softmax(),
  cosformer_causal: ({options}) => featureMaps.cosFormer({maxLength: options.M as number}),
  cosformer_noncausal: ({options}) => featureMaps.cosFormer({maxLength: options.M as number}),
};

/** The cases of g4_feature_maps, given by the caller. */
export function mapCases(goldens: GoldenCase[]): MapCase[] {
  return goldens
    .filter(({name}) => !OTHERS.includes(name))
    .flatMap((golden) => {
      const make = MAPS[golden.name];
      if (make === undefined) {
        throw new Error(`no feature map for golden g4 ${golden.name}`);
      }
      const scaled = golden.name.startsWith('favor') ? [false, true] : [false];
      const weights = ['W', 'b', 'gamma', 'beta'].filter((name) => golden.inputs[name] !== undefined);
      return scaled.map((stabilize) => ({
        id: `golden g4 ${golden.name.replaceAll('_', ' ')}${stabilize ? ' with stabilised queries' : ''}`,
        golden,
        map: make(golden, stabilize),
        weights,
        comparesQueries: !stabilize,
      }));
    });
}

const toTensor = ({shape, data}: GoldenTensor): tf.Tensor => tf.tensor(data, shape, 'float32');

/** What is wrong, one line each; empty when the case passes. */
export async function runMapCase(
  testCase: MapCase,
  {tolerance = FLOAT32, outputsOnly = false}: {tolerance?: Tolerance; outputsOnly?: boolean} = {},
): Promise<string[]> {
  const {golden, map, weights, comparesQueries} = testCase;
  const {inputs, outputs, cotangents, grads, options} = golden;
  const before = tf.memory().numTensors;
  const got: {[name: string]: tf.Tensor} = tf.tidy(() => {
    const tensors = Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, toTensor(x)]));
    const named = (list: tf.Tensor[]) => Object.fromEntries(weights.map((name, i) => [name, list[i]]));
    const given = weights.map((name) => tensors[name]);
    const run = (causal: boolean, [q, k, v, ...rest]: tf.Tensor[]) =>
      linearAttention(q, k, v, {
        featureMap: map,
        causal,
        ...(options.eps === undefined ? {} : {eps: options.eps as number}),
        ...(weights.length === 0 ? {} : {featureMapWeights: named(rest)}),
        ...(tensors.mask === undefined ? {} : {mask: tensors.mask}),
      });
    const all = [tensors.q, tensors.k, tensors.v, ...given];
    const isCausal = (name: string) => name === 'out_causal' || (name === 'out' && options.causal === true);
    const results: {[name: string]: tf.Tensor} = {};
    for (const name of Object.keys(outputs)) {
      const context = {weights: named(given)};
      if (name.startsWith('out')) {
        results[name] = run(isCausal(name), all);
      } else if (name === 'phi_k') {
        results[name] = map.keys(tensors.k, context);
      } else if (comparesQueries) {
        results[name] = map.queries(tensors.q, context);
      }
    }
    if (!outputsOnly) {
      const [[out, cotangent]] = Object.entries(cotangents);
      const loss = (...xs: tf.Tensor[]) => tf.sum(tf.mul(run(isCausal(out), xs), toTensor(cotangent)));
      tf.grads(loss as (...xs: tf.Tensor[]) => tf.Scalar)(all).forEach((gradient, i) => {
        results[`d${['q', 'k', 'v', ...weights][i]}`] = gradient;
      });
    }
    return results;
  });
  const failures: string[] = [];
  for (const [name, tensor] of Object.entries(got)) {
    const values = await tensor.data();
    tensor.dispose();
    const isGradient = name.startsWith('d');
    const want = isGradient ? grads[name.slice(1)] : outputs[name];
    const fault =
      tolerance === FLOAT32
        ? goldenDifference(values, want.data, isGradient ? 'gradient' : 'output')
        : difference(values, want.data, tolerance);
    if (fault !== null) failures.push(`${name}: ${fault}`);
  }
  const leaked = tf.memory().numTensors - before;
  return leaked === 0 ? failures : [...failures, `${leaked} tensors leaked`];
}
