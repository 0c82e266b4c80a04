/** Wrong calls of the linear attention ops: the whole text of each error, and that nothing was made or lost. */
import * as tf from '@tensorflow/tfjs-core';
import {
  disposeState,
  type FeatureMap,
  featureMaps,
  linearAttention,
  linearAttentionStep,
  register,
  registerFeatureMap,
  zeroState,
} from '../index';
import {describeOnBackends} from './helpers/backends';
import {messageOf} from './helpers/numbers';

// biome-ignore lint/suspicious/noExplicitAny: arguments of the wrong types are the point
type Any = any;
type Call = (...args: Any[]) => unknown;

const attend: Call = linearAttention as Call;
const step: Call = linearAttentionStep as Call;
const zero: Call = zeroState as Call;
const name: Call = registerFeatureMap as Call;

const z = (...shape: number[]): tf.Tensor => tf.zeros(shape);
/** q, k and v of B 2, H 4, N 9, r 16, d 8. */
const qkv = () => [z(2, 4, 9, 16), z(2, 4, 9, 16), z(2, 4, 9, 8)];
const withOptions = (options: Any) => () => [...qkv(), options];
const tokens = () => [z(2, 4, 16), z(2, 4, 16), z(2, 4, 8)];
const state = () => ({s: z(2, 4, 16, 8), z: z(2, 4, 16)});
const withStep = (options: Any) => () => [...tokens(), state(), options];

function disposed(...shape: number[]): tf.Tensor {
  const x = z(...shape);
  x.dispose();
  return x;
}

/** A map of one's own, to be broken in one place. */
const ownMap = (changes: Partial<FeatureMap> = {}): FeatureMap => ({
  ...featureMaps.identity(),
  name: 'own',
  pointwise: undefined,
  ...changes,
});
const weighted = ownMap({
  weights: (inputDim, numHeads) => [
    {name: 'w', shape: [numHeads, inputDim], initializer: 'ones', trainable: true},
  ],
});

const KNOWN = Object.keys(featureMaps)
  .map((name) => `'${name}'`)
  .join(', ');

/** What is called, the arguments, and the whole message. */
const CASES: [string, Call, () => Any[], string][] = [
  // Ranks and shapes.
  [
    'rank 2',
    attend,
    () => [z(9, 16), z(9, 16), z(9, 8)],
    'linearAttention: expected q, k and v to be all of rank 4 ([B,H,N,.]) or all of rank 3 ([B,N,.], one head); got q [9,16], k [9,16], v [9,8].',
  ],
  [
    'mixed ranks',
    attend,
    () => [z(2, 4, 9, 16), z(2, 9, 16), z(2, 4, 9, 8)],
    'linearAttention: expected q, k and v to be all of rank 4 ([B,H,N,.]) or all of rank 3 ([B,N,.], one head); got q [2,4,9,16], k [2,9,16], v [2,4,9,8].',
  ],
  [
    'rank 5 of [B,N,H,.]',
    attend,
    () => [z(1, 2, 4, 9, 16), z(1, 2, 4, 9, 16), z(1, 2, 4, 9, 8), {dataFormat: 'BNHD'}],
    'linearAttention: expected q, k and v to be all of rank 4 ([B,N,H,.]) or all of rank 3 ([B,N,.], one head); got q [1,2,4,9,16], k [1,2,4,9,16], v [1,2,4,9,8].',
  ],
  [
    'a flat typed array',
    attend,
    () => [new Float32Array(8), new Float32Array(8), new Float32Array(8)],
    'linearAttention: expected q, k and v to be all of rank 4 ([B,H,N,.]) or all of rank 3 ([B,N,.], one head); got q [8], k [8], v [8].',
  ],
  [
    'values of another length than the keys',
    attend,
    () => [z(2, 4, 9, 16), z(2, 4, 9, 16), z(2, 4, 8, 16)],
    'linearAttention: expected v.shape[2] (8) to equal k.shape[2] (9); got k [2,4,9,16], v [2,4,8,16].',
  ],
  [
    'values of another length than the keys in [B,N,H,.]',
    attend,
    () => [z(2, 9, 4, 16), z(2, 9, 4, 16), z(2, 8, 4, 16), {dataFormat: 'BNHD'}],
    'linearAttention: expected v.shape[1] (8) to equal k.shape[1] (9); got k [2,9,4,16], v [2,8,4,16].',
  ],
  [
    'batches of two sizes',
    attend,
    () => [z(2, 4, 9, 16), z(3, 4, 9, 16), z(3, 4, 9, 8)],
    'linearAttention: expected k.shape[0] (3) to equal q.shape[0] (2); got q [2,4,9,16], k [3,4,9,16].',
  ],
  [
    'features of two sizes',
    attend,
    () => [z(2, 9, 16), z(2, 9, 15), z(2, 9, 8)],
    'linearAttention: expected k.shape[2] (15) to equal q.shape[2] (16); got q [2,9,16], k [2,9,15].',
  ],
  [
    'fewer key heads than query heads',
    attend,
    () => [z(2, 4, 9, 16), z(2, 2, 9, 16), z(2, 2, 9, 8)],
    'linearAttention: expected k.shape[1] (2) to equal q.shape[1] (4): grouped heads are not supported yet; got q [2,4,9,16], k [2,2,9,16].',
  ],
  [
    'fewer value heads than query heads',
    attend,
    () => [z(2, 9, 4, 16), z(2, 9, 4, 16), z(2, 9, 1, 8), {dataFormat: 'BNHD'}],
    'linearAttention: expected v.shape[2] (1) to equal q.shape[2] (4): grouped heads are not supported yet; got q [2,9,4,16], v [2,9,1,8].',
  ],
  [
    'causal attention of two lengths',
    attend,
    () => [z(2, 4, 3, 16), z(2, 4, 9, 16), z(2, 4, 9, 8), {causal: true}],
    'linearAttention: expected k.shape[2] (9) to equal q.shape[2] (3) when causal; got q [2,4,3,16], k [2,4,9,16].',
  ],
  [
    'no features',
    attend,
    () => [z(2, 4, 9, 0), z(2, 4, 9, 0), z(2, 4, 9, 8)],
    'linearAttention: expected q.shape[3] to be at least 1; got q [2,4,9,0].',
  ],
  // What is not a tensor of numbers.
  [
    'nothing',
    attend,
    () => [],
    'linearAttention: expected q to be a tensor or nested arrays of numbers; got undefined.',
  ],
  [
    'a string tensor',
    attend,
    () => [tf.tensor(['a'], [1, 1, 1]), z(1, 1, 1), z(1, 1, 1)],
    'linearAttention: expected q.dtype to be float32, int32 or bool; got string.',
  ],
  [
    'a complex tensor',
    attend,
    () => [z(1, 1, 1), z(1, 1, 1), tf.complex(z(1, 1, 1), z(1, 1, 1))],
    'linearAttention: expected v.dtype to be float32, int32 or bool; got complex64.',
  ],
  [
    'strings in nested arrays',
    attend,
    () => [[[[1, 'a']]], [[[1, 2]]], [[[1, 2]]]],
    "linearAttention: expected q to hold numbers; got 'a'.",
  ],
  [
    'ragged nested arrays',
    attend,
    () => [[[[1, 2], [3]]], [[[1, 2]]], [[[1, 2]]]],
    'linearAttention: expected q to be a regular nested array of shape [1,2,2]; got [3] inside it.',
  ],
  [
    'a disposed tensor',
    attend,
    () => [z(2, 4, 9, 16), disposed(2, 4, 9, 16), z(2, 4, 9, 8)],
    'linearAttention: expected k to be a live tensor; got a disposed one of shape [2,4,9,16].',
  ],
  // Options.
  [
    'a misspelt option',
    attend,
    withOptions({casual: true}),
    "linearAttention: unknown option 'casual'; expected 'causal', 'featureMap', 'normalize', 'eps', 'mask', 'initialState', 'returnState', 'dataFormat', 'scale', 'featureMapWeights', 'offset', 'positions'.",
  ],
  [
    'a tensor as the options',
    attend,
    () => [...qkv(), z(2, 9)],
    'linearAttention: expected options to be an object; got a float32 tensor of shape [2,9].',
  ],
  [
    'null as the options',
    attend,
    withOptions(null),
    'linearAttention: expected options to be an object; got null.',
  ],
  [
    'causal as a number',
    attend,
    withOptions({causal: 1}),
    'linearAttention: expected causal to be true or false; got 1.',
  ],
  [
    'normalize as a string',
    attend,
    withOptions({normalize: 'no'}),
    "linearAttention: expected normalize to be true or false; got 'no'.",
  ],
  [
    'returnState as null',
    attend,
    withOptions({returnState: null}),
    'linearAttention: expected returnState to be true or false; got null.',
  ],
  [
    'another layout',
    attend,
    withOptions({dataFormat: 'NHWC'}),
    "linearAttention: expected dataFormat to be one of 'BHND', 'BNHD'; got 'NHWC'.",
  ],
  [
    'a NaN eps',
    attend,
    withOptions({eps: Number.NaN}),
    'linearAttention: expected eps to be a finite number of at least 0; got NaN.',
  ],
  [
    'a negative eps',
    attend,
    withOptions({eps: -1e-6}),
    'linearAttention: expected eps to be a finite number of at least 0; got -0.000001.',
  ],
  [
    'a NaN scale',
    attend,
    withOptions({scale: Number.NaN, normalize: false}),
    'linearAttention: expected scale to be a finite number; got NaN.',
  ],
  [
    'an infinite scale',
    attend,
    withOptions({scale: Number.POSITIVE_INFINITY}),
    'linearAttention: expected scale to be a finite number; got Infinity.',
  ],
  [
    'a negative offset',
    attend,
    withOptions({offset: -1}),
    'linearAttention: expected offset to be a whole number of at least 0; got -1.',
  ],
  // Masks.
  [
    'a mask of the wrong length',
    attend,
    () => [...qkv(), {mask: z(2, 8)}],
    'linearAttention: expected mask to be of shape [B,Nk] = [2,9]; got [2,8].',
  ],
  [
    'a mask with a head axis',
    attend,
    () => [...qkv(), {mask: z(2, 4, 9)}],
    'linearAttention: expected mask to be of shape [B,Nk] = [2,9]; got [2,4,9].',
  ],
  [
    'a mask of scores',
    attend,
    () => [...qkv(), {mask: z(2, 4, 9, 9)}],
    'linearAttention: expected mask to be of shape [B,Nk] = [2,9]; got [2,4,9,9].',
  ],
  [
    'a mask of one row',
    attend,
    withOptions({mask: [1, 1, 1, 1, 1, 1, 1, 1, 0]}),
    'linearAttention: expected mask to be of shape [B,Nk] = [2,9]; got [9].',
  ],
  [
    'a disposed mask',
    attend,
    () => [...qkv(), {mask: disposed(2, 9)}],
    'linearAttention: expected mask to be a live tensor; got a disposed one of shape [2,9].',
  ],
  [
    'null as the mask',
    attend,
    withOptions({mask: null}),
    'linearAttention: expected mask to be a tensor or nested arrays of numbers; got null.',
  ],
  // States.
  [
    'a stale state',
    attend,
    () => [...qkv(), {initialState: {s: disposed(2, 4, 16, 8), z: z(2, 4, 16)}}],
    'linearAttention: expected initialState.s to be a live tensor; got a disposed one of shape [2,4,16,8].',
  ],
  [
    'a state of another batch size',
    attend,
    () => [...qkv(), {initialState: {s: z(1, 4, 16, 8), z: z(1, 4, 16)}}],
    "linearAttention: expected initialState.s to be of shape [B,H,r',d] = [2,4,16,8]; got [1,4,16,8].",
  ],
  [
    'a state with z of the wrong rank',
    attend,
    () => [...qkv(), {initialState: {s: z(2, 4, 16, 8), z: z(2, 4, 16, 1)}}],
    "linearAttention: expected initialState.z to be of shape [B,H,r'] = [2,4,16]; got [2,4,16,1].",
  ],
  [
    'a state without z when normalising',
    attend,
    () => [...qkv(), {initialState: {s: z(2, 4, 16, 8)}}],
    'linearAttention: expected initialState.z, which only normalize = false can do without; got undefined.',
  ],
  [
    'a cache as the state',
    attend,
    () => [...qkv(), {initialState: {k: z(2, 4, 16, 8), v: z(2, 4, 16, 8)}}],
    'linearAttention: expected initialState to be a state {s, z}; got an object with keys k, v.',
  ],
  [
    'a result as the state',
    attend,
    () => [...qkv(), {initialState: {output: z(1), state: state()}}],
    'linearAttention: expected initialState to be a state {s, z}; got an object with keys output, state.',
  ],
  // Feature maps.
  [
    'an unknown feature map',
    attend,
    withOptions({featureMap: 'softplus'}),
    `linearAttention: expected featureMap to be one of ${KNOWN}, or a FeatureMap; got 'softplus'.`,
  ],
  [
    'a factory instead of a map',
    attend,
    withOptions({featureMap: featureMaps.elu}),
    'linearAttention: expected featureMap to be a FeatureMap {name, dim, queries, keys, getConfig}; got function elu.',
  ],
  [
    'a map without keys',
    attend,
    withOptions({featureMap: ownMap({keys: undefined})}),
    'linearAttention: expected featureMap.keys to be a function; got undefined.',
  ],
  [
    'a map that says it is a pointwise function which no kernel has',
    attend,
    withOptions({featureMap: ownMap({pointwise: 'tanh' as Any})}),
    "linearAttention: expected featureMap.pointwise to be one of 'identity', 'elu', 'relu', 'squaredRelu', 'exp'; got 'tanh'.",
  ],
  [
    'causal attention with a map over the whole sequence',
    attend,
    withOptions({featureMap: ownMap({causal: false}), causal: true}),
    "linearAttention: feature map 'own' looks at the whole sequence and cannot be causal; got causal = true.",
  ],
  [
    'a map that returns another size than it says',
    attend,
    withOptions({featureMap: ownMap({dim: (r) => 2 * r})}),
    "linearAttention: expected feature map 'own' to return queries of shape [2,4,9,32]; got [2,4,9,16].",
  ],
  [
    'weights for a map that has none',
    attend,
    () => [...qkv(), {featureMapWeights: {w: z(2)}}],
    "linearAttention: feature map 'elu' has no weights, but featureMapWeights were given: an object with keys w.",
  ],
  [
    'no weights for a map that needs some',
    attend,
    withOptions({featureMap: weighted}),
    "linearAttention: feature map 'own' needs featureMapWeights {w [4,16]}; got none.",
  ],
  [
    'a weight of the wrong shape',
    attend,
    () => [...qkv(), {featureMap: weighted, featureMapWeights: {w: z(16, 4)}}],
    'linearAttention: expected featureMapWeights.w to be of shape [4,16]; got [16,4].',
  ],
  [
    'a weight that the map does not know',
    attend,
    () => [...qkv(), {featureMap: weighted, featureMapWeights: {w: z(4, 16), b: z(4)}}],
    "linearAttention: unknown weight 'b' in featureMapWeights; feature map 'own' has w [4,16].",
  ],
  // Steps.
  [
    'a step of rank 4',
    step,
    () => [...qkv(), state()],
    'linearAttentionStep: expected q, k and v to be of rank 3 ([B,H,.], one token); got q [2,4,9,16], k [2,4,9,16], v [2,4,9,8].',
  ],
  [
    'a step without a state',
    step,
    tokens,
    'linearAttentionStep: expected state to be a state {s, z}; got undefined.',
  ],
  [
    'a step from a stale state',
    step,
    () => [...tokens(), {s: z(2, 4, 16, 8), z: disposed(2, 4, 16)}],
    'linearAttentionStep: expected state.z to be a live tensor; got a disposed one of shape [2,4,16].',
  ],
  [
    'a step from a state of other heads',
    step,
    () => [...tokens(), {s: z(2, 3, 16, 8), z: z(2, 3, 16)}],
    "linearAttentionStep: expected state.s to be of shape [B,H,r',d] = [2,4,16,8]; got [2,3,16,8].",
  ],
  [
    'a step with grouped heads',
    step,
    () => [z(2, 4, 16), z(2, 2, 16), z(2, 2, 8), state()],
    'linearAttentionStep: expected k.shape[1] (2) to equal q.shape[1] (4): grouped heads are not supported yet; got q [2,4,16], k [2,2,16].',
  ],
  [
    'a step with an option of whole sequences',
    step,
    withStep({causal: true}),
    "linearAttentionStep: unknown option 'causal'; expected 'featureMap', 'normalize', 'eps', 'scale', 'mask', 'offset', 'positions', 'featureMapWeights'.",
  ],
  [
    'a step with a mask of rank 2',
    step,
    () => [...tokens(), state(), {mask: z(2, 1)}],
    'linearAttentionStep: expected mask to be of shape [B] = [2]; got [2,1].',
  ],
  [
    'a step with a fractional offset',
    step,
    withStep({offset: 1.5}),
    'linearAttentionStep: expected offset to be a whole number of at least 0; got 1.5.',
  ],
  [
    'a step with a map over the whole sequence',
    step,
    withStep({featureMap: ownMap({causal: false})}),
    "linearAttentionStep: feature map 'own' looks at the whole sequence and cannot be used step by step.",
  ],
  // States made and disposed.
  ['a zero state of nothing', zero, () => [], 'zeroState: expected args to be an object; got undefined.'],
  [
    'a zero state without heads',
    zero,
    () => [{batchSize: 1, keyDim: 2, valueDim: 3}],
    'zeroState: expected numHeads to be a whole number of at least 1; got undefined.',
  ],
  [
    'a zero state of half a value',
    zero,
    () => [{batchSize: 1, numHeads: 1, keyDim: 2, valueDim: 0.5}],
    'zeroState: expected valueDim to be a whole number of at least 1; got 0.5.',
  ],
  [
    'a zero state with a misspelt argument',
    zero,
    () => [{batchSize: 1, heads: 1, keyDim: 2, valueDim: 3}],
    "zeroState: unknown option 'heads'; expected 'batchSize', 'numHeads', 'keyDim', 'valueDim', 'featureMap'.",
  ],
  [
    'a zero state for an unknown map',
    zero,
    () => [{batchSize: 1, numHeads: 1, keyDim: 2, valueDim: 3, featureMap: 'toString'}],
    `zeroState: expected featureMap to be one of ${KNOWN}, or a FeatureMap; got 'toString'.`,
  ],
  [
    'disposing nothing',
    disposeState as Call,
    () => [undefined],
    'disposeState: expected state to be a state {s, z} or a cache; got undefined.',
  ],
  [
    'disposing a tensor as a state',
    disposeState as Call,
    () => [z(2)],
    'disposeState: expected state to be a state {s, z} or a cache; got a float32 tensor of shape [2].',
  ],
  // Registration.
  [
    'a map with a name in snake case',
    name,
    () => ['my_map', () => ownMap({name: 'my_map'})],
    "registerFeatureMap: expected name to be in lower camel case, such as 'myMap', to survive saving; got 'my_map'.",
  ],
  [
    'a map with a leading capital',
    name,
    () => ['MyMap', () => ownMap({name: 'MyMap'})],
    "registerFeatureMap: expected name to be in lower camel case, such as 'myMap', to survive saving; got 'MyMap'.",
  ],
  [
    'a map whose name is taken',
    name,
    () => ['elu', featureMaps.elu],
    "registerFeatureMap: expected a new name; 'elu' is registered already.",
  ],
  [
    'a map instead of a factory',
    name,
    () => ['own', ownMap()],
    'registerFeatureMap: expected factory to be a function that returns a FeatureMap; got an object with keys name, pointwise, dim, queries, keys, getConfig.',
  ],
  [
    'a factory of a map with another name',
    name,
    () => ['mine', () => ownMap()],
    "registerFeatureMap: expected factory() to return a map named 'mine'; got 'own'.",
  ],
  [
    'a map with a config key in snake case',
    name,
    () => ['own', () => ownMap({getConfig: () => ({num_features: 3})})],
    "registerFeatureMap: expected config keys in lower camel case, such as 'myKey', to survive saving; got 'num_features'.",
  ],
  [
    'one backend instead of a list',
    register as Call,
    () => [{backends: 'webgl'}],
    "register: expected backends to be an array of backend names; got 'webgl'.",
  ],
];

describeOnBackends('a wrong call says what is wrong and leaves nothing behind:', (backend) => {
  // wasm cannot make a complex tensor in the first place.
  const possible = CASES.filter(([title]) => !(backend === 'wasm' && title === 'a complex tensor'));
  test.each(possible)('%s', (_, call, args, message) => {
    tf.tidy(() => {
      const given = args();
      const before = tf.memory().numTensors;
      expect(messageOf(() => call(...given))).toBe(message);
      expect(tf.memory().numTensors).toBe(before);
    });
  });
});
