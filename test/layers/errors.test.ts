/** Wrong arguments and calls: each is refused with the whole text asserted, and leaves nothing behind. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {type FeatureMap, featureMaps, layers} from '../../index';
import {describeOnBackends} from '../helpers/backends';
import {values} from '../helpers/layers';

const OK = {numHeads: 2, keyDim: 4};
const SHARED =
  "'numHeads', 'keyDim', 'valueDim', 'outputDim', 'causal', 'useBias', 'dropout', 'rotary', 'rotaryPairing', 'rotaryBase', 'kernelInitializer', 'biasInitializer', 'kernelRegularizer', 'biasRegularizer', 'kernelConstraint', 'biasConstraint', 'seed'";
const LAYER =
  "'inputShape', 'batchInputShape', 'batchSize', 'dtype', 'name', 'trainable', 'weights', 'inputDType'";
const wholeSequence: FeatureMap = {
  ...featureMaps.elu(),
  name: 'wholeSequence',
  pointwise: undefined,
  causal: false,
};
const oddFeatures: FeatureMap = {...wholeSequence, name: 'oddFeatures', causal: true, dim: () => 5};

// biome-ignore lint/suspicious/noExplicitAny: wrong on purpose
type Wrong = any;
const ARGUMENTS: [Wrong, string][] = [
  [undefined, 'LinearAttention: expected an object of arguments; got undefined.'],
  [[OK], 'LinearAttention: expected an object of arguments; got [an object with keys numHeads, keyDim].'],
  [{keyDim: 4}, 'LinearAttention: expected numHeads to be a whole number of at least 1; got undefined.'],
  [{...OK, numHeads: 0}, 'LinearAttention: expected numHeads to be a whole number of at least 1; got 0.'],
  [{...OK, numHeads: 1.5}, 'LinearAttention: expected numHeads to be a whole number of at least 1; got 1.5.'],
  [
    {...OK, keyDim: Number.NaN},
    'LinearAttention: expected keyDim to be a whole number of at least 1; got NaN.',
  ],
  [{...OK, valueDim: -1}, 'LinearAttention: expected valueDim to be a whole number of at least 1; got -1.'],
  [
    {...OK, outputDim: '8'},
    "LinearAttention: expected outputDim to be a whole number of at least 1; got '8'.",
  ],
  [{...OK, causal: 1}, 'LinearAttention: expected causal to be true or false; got 1.'],
  [{...OK, useBias: 'no'}, "LinearAttention: expected useBias to be true or false; got 'no'."],
  [{...OK, normalize: 0}, 'LinearAttention: expected normalize to be true or false; got 0.'],
  [{...OK, dropout: 1}, 'LinearAttention: expected dropout to be a number in [0, 1); got 1.'],
  [{...OK, dropout: Number.NaN}, 'LinearAttention: expected dropout to be a number in [0, 1); got NaN.'],
  [{...OK, epsilon: -1}, 'LinearAttention: expected epsilon to be a finite number of at least 0; got -1.'],
  [
    {...OK, seed: 0.5},
    `LinearAttention: expected seed to be a whole number of at least ${Number.MIN_SAFE_INTEGER}; got 0.5.`,
  ],
  [
    {...OK, rotary: true},
    "LinearAttention: expected rotary to be one of false, 'input', 'numerator'; got true.",
  ],
  [
    {...OK, rotaryPairing: 'split'},
    "LinearAttention: expected rotaryPairing to be one of 'half', 'interleaved'; got 'split'.",
  ],
  [{...OK, rotaryBase: 0}, 'LinearAttention: expected rotaryBase to be a finite number above 0; got 0.'],
  [
    {...OK, keyDim: 3, rotary: 'input'},
    "LinearAttention: expected keyDim to be even with rotary 'input'; got 3.",
  ],
  [
    {...OK, featureMap: oddFeatures, rotary: 'numerator'},
    "LinearAttention: expected an even number of features with rotary 'numerator'; got 5 (oddFeatures of keyDim 4).",
  ],
  [
    {...OK, featureMap: wholeSequence, causal: true},
    "LinearAttention: feature map 'wholeSequence' cannot be used causally: its keys depend on the whole sequence.",
  ],
  [
    {...OK, featureMap: 7},
    'LinearAttention: expected featureMap to be a FeatureMap {name, dim, queries, keys, getConfig}; got 7.',
  ],
  [
    {...OK, kernelInitializer: 'glorot'},
    "LinearAttention: unknown initializer 'Glorot' in kernelInitializer; expected a registered initializer.",
  ],
  [
    {...OK, kernelRegularizer: 0.1},
    'LinearAttention: expected kernelRegularizer to be the name, config or object of a regularizer; got 0.1.',
  ],
  [
    {...OK, biasInitializer: {}},
    'LinearAttention: expected biasInitializer to be the name, config or object of an initializer; got an object with keys (none).',
  ],
  [
    {...OK, num_heads: 2},
    `LinearAttention: unknown argument 'num_heads'; expected ${SHARED}, 'featureMap', 'normalize', 'epsilon', ${LAYER}.`,
  ],
  [
    {...OK, use_causal_mask: true},
    "LinearAttention: 'use_causal_mask' is not supported: set causal: true in the layer's arguments.",
  ],
  [
    {...OK, returnAttentionScores: true},
    "LinearAttention: 'returnAttentionScores' is not supported: attention weights are never formed; impliedAttention(q, k) computes them for looking at.",
  ],
];

const SOFTMAX_ARGUMENTS: [Wrong, string][] = [
  [
    {...OK, rotary: 'numerator'},
    "SoftmaxAttention: expected rotary to be one of false, 'input'; got 'numerator'.",
  ],
  [
    {...OK, featureMap: 'elu'},
    `SoftmaxAttention: unknown argument 'featureMap'; expected ${SHARED}, ${LAYER}.`,
  ],
  [{...OK, keyDim: 0}, 'SoftmaxAttention: expected keyDim to be a whole number of at least 1; got 0.'],
];

const MASK_HINT =
  'is not supported: masks are per key, [B,Nk]: pass {mask} with one input, or [query, value, key, mask]; for a causal mask set causal: true in the arguments.';

describeOnBackends('wrong arguments', () => {
  test.each(ARGUMENTS.map(([args, text]) => [text, args]))('%s', (text, args) => {
    const before = tf.memory().numTensors;
    expect(() => layers.linearAttention(args)).toThrow(new Error(text as string));
    expect(tf.memory().numTensors).toBe(before);
  });
  test.each(SOFTMAX_ARGUMENTS.map(([args, text]) => [text, args]))('%s', (text, args) => {
    expect(() => layers.softmaxAttention(args)).toThrow(new Error(text as string));
  });
});

const x = (...shape: number[]) => values(shape, 1);
type Layer = ReturnType<typeof layers.linearAttention>;
const CALLS: [string, (layer: Layer) => unknown, string][] = [
  [
    'one input of rank 2',
    (l) => l.apply(x(5, 6)),
    'expected the input to have rank 3, [batch, length, features]; got shape [5,6].',
  ],
  [
    'a value of rank 4',
    (l) => l.apply([x(2, 5, 6), x(2, 5, 6, 1)]),
    'expected value to have rank 3, [batch, length, features]; got shape [2,5,6,1].',
  ],
  [
    'five inputs',
    (l) => l.apply([1, 2, 3, 4, 5].map(() => x(2, 5, 6))),
    'expected x, [query, value] or [query, value, key], each [batch, length, features], and optionally a mask [batch, length] as the last; got 5 inputs of shapes [2,5,6], [2,5,6], [2,5,6], [2,5,6], [2,5,6].',
  ],
  [
    'other features than built for',
    (l) => l.apply(x(2, 5, 7)),
    'expected query.shape[2] to be 6, which the layer was built for; got shape [2,5,7].',
  ],
  [
    'batches that differ',
    (l) => l.apply([x(2, 5, 6), x(3, 5, 6)]),
    'expected query, value and key of one batch size; got query [2,5,6], value [3,5,6], key [3,5,6].',
  ],
  [
    'value and key of different lengths',
    (l) => l.apply([x(2, 5, 6), x(2, 5, 6), x(2, 4, 6)]),
    'expected value.shape[1] (5) to equal key.shape[1] (4); got query [2,5,6], value [2,5,6], key [2,4,6].',
  ],
  [
    'causal and different lengths',
    (l) => l.apply([x(2, 5, 6), x(2, 4, 6)]),
    'expected query.shape[1] (5) to equal key.shape[1] (4) in a causal layer; got query [2,5,6], value [2,4,6], key [2,4,6].',
  ],
  [
    'a mask of another length',
    (l) => l.apply(x(2, 5, 6), {mask: tf.ones([2, 4])}),
    "expected the mask's shape to be [batch, key length] [2,5]; got [2,4].",
  ],
  [
    'a mask of another rank',
    (l) => l.apply(x(2, 5, 6), {mask: tf.ones([2, 5, 5])}),
    "expected the mask's shape to be [batch, key length] [2,5]; got [2,5,5].",
  ],
  [
    'a mask input of another length',
    (l) => l.apply([x(2, 5, 6), x(2, 5, 6), x(2, 5, 6), tf.ones([2, 6])]),
    "expected the mask's shape to be [batch, key length] [2,5]; got [2,6].",
  ],
  [
    'too few masks',
    (l) => l.apply([x(2, 5, 6), x(2, 5, 6), x(2, 5, 6)], {mask: [null, null]}),
    'expected one mask (or null) per input; got 2 for 3 inputs.',
  ],
  ['a string', (l) => l.apply('x' as Wrong), "expected tensors; got 'x'."],
  ['attention_mask', (l) => l.apply(x(2, 5, 6), {attention_mask: 1}), `'attention_mask' ${MASK_HINT}`],
  ['attentionMask', (l) => l.call(x(2, 5, 6), {attentionMask: 1}), `'attentionMask' ${MASK_HINT}`],
  [
    'useCausalMask in a call',
    (l) => l.apply(x(2, 5, 6), {useCausalMask: true}),
    "'useCausalMask' is not supported: set causal: true in the layer's arguments.",
  ],
  [
    'return_attention_scores in a symbolic call',
    (l) => l.apply(tfl.input({shape: [null, 6]}), {return_attention_scores: true}),
    "'return_attention_scores' is not supported: attention weights are never formed; impliedAttention(q, k) computes them for looking at.",
  ],
  [
    'a mask in a symbolic call',
    (l) => l.apply(tfl.input({shape: [null, 6]}), {mask: tf.ones([1, 5])}),
    'tfjs drops a mask given to a symbolic call; pass it as a further input instead, [query, value, key, mask].',
  ],
  [
    'a disposed input',
    (l) => {
      const gone = x(2, 5, 6);
      gone.dispose();
      return l.call(gone, {});
    },
    'expected the input to be a live tensor; got a disposed one of shape [2,5,6].',
  ],
];

const STREAM_CALLS: [string, (layer: Layer) => unknown, string][] = [
  [
    'no batch size',
    (l) => l.streamState(0),
    '.streamState: expected batchSize to be a whole number of at least 1; got 0.',
  ],
  [
    'another rank',
    (l) => l.streamCall(x(2, 6), l.streamState(2), {positions: 0}),
    '.streamCall: expected x to have shape [batch, tokens, 6] with at least one token; got [2,6].',
  ],
  [
    'no tokens',
    (l) => l.streamCall(x(2, 0, 6), l.streamState(2), {positions: 0}),
    '.streamCall: expected x to have shape [batch, tokens, 6] with at least one token; got [2,0,6].',
  ],
  [
    'a negative position',
    (l) => l.streamCall(x(2, 1, 6), l.streamState(2), {positions: -1}),
    '.streamCall: expected positions to be a whole number of at least 0; got -1.',
  ],
  [
    'positions for other tokens',
    (l) => l.streamCall(x(2, 3, 6), l.streamState(2), {positions: new Int32Array(3)}),
    '.streamCall: expected positions to be a number or an Int32Array of batch * tokens (6) values; got 3 values.',
  ],
  [
    'a mask of another shape',
    (l) => l.streamCall(x(2, 3, 6), l.streamState(2), {positions: 0, mask: tf.ones([2, 4])}),
    '.streamCall: expected mask to have shape [batch, tokens] [2,3]; got [2,4].',
  ],
  [
    'a state of another batch',
    (l) => l.streamCall(x(2, 3, 6), l.streamState(1), {positions: 0}),
    '.streamCall: expected state.s to have shape [2,2,4,4]; got [1,2,4,4].',
  ],
  [
    'no state',
    (l) => l.streamCall(x(2, 3, 6), {} as Wrong, {positions: 0}),
    '.streamCall: expected state.s to be a tensor from streamState or streamCall; got undefined.',
  ],
  [
    'a disposed state',
    (l) => {
      const state = l.streamState(2);
      tf.dispose(state as {s: tf.Tensor; z: tf.Tensor});
      return l.streamCall(x(2, 3, 6), state, {positions: 0});
    },
    '.streamCall: expected state.s to be a live tensor; got a disposed one.',
  ],
];

describeOnBackends('wrong calls', () => {
  const refused = (call: (layer: Layer) => unknown, separator: string, text: string) => {
    const layer = layers.linearAttention({...OK, causal: true, name: 'attention'});
    layer.apply(x(2, 5, 6));
    tf.tidy(() => {
      expect(() => call(layer)).toThrow(new Error(`LinearAttention 'attention'${separator}${text}`));
    });
  };
  test.each(CALLS)('%s', (_, call, text) => refused(call, ': ', text));
  test.each(STREAM_CALLS)('streaming: %s', (_, call, text) => refused(call, '', text));

  test('a refused call leaves no tensor behind', () => {
    const layer = layers.softmaxAttention({...OK, causal: true});
    const [a, b, mask] = [x(2, 5, 6), x(2, 4, 6), tf.ones([2, 3])];
    tf.dispose(layer.apply(a) as tf.Tensor);
    const before = tf.memory().numTensors;
    expect(() => layer.apply([a, b])).toThrow('in a causal layer');
    expect(() => layer.apply(a, {mask})).toThrow("expected the mask's shape");
    expect(tf.memory().numTensors).toBe(before);
  });

  test('shapes that cannot fit are refused when the graph is built', () => {
    const input = (...shape: (number | null)[]) => tfl.input({shape});
    const layer = () => layers.linearAttention({...OK, causal: true, name: 'attention'});
    expect(() => layer().apply([input(5, 6), input(4, 6)])).toThrow(
      "LinearAttention 'attention': expected query.shape[1] (5) to equal key.shape[1] (4) in a causal layer; got query [null,5,6], value [null,4,6], key [null,4,6].",
    );
    expect(() => layer().apply(input(5, null))).toThrow(
      "LinearAttention 'attention': expected the last dimension of query to be known; got shape [null,5,null].",
    );
    expect(() => layer().apply(input(5))).toThrow(
      "LinearAttention 'attention': expected the input to have rank 3, [batch, length, features]; got shape [null,5].",
    );
  });
});
