/** Wrong calls of the ops beside linear attention: the whole text of each error, and that nothing was made. */
import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {impliedAttention, kvCache, rotary, softmaxAttention, softmaxAttentionStep} from '../ops';
import {describeOnBackends} from './helpers/backends';
import {messageOf} from './helpers/numbers';

// biome-ignore lint/suspicious/noExplicitAny: arguments of the wrong types are the point
type Any = any;

const soft = softmaxAttention as (...args: Any[]) => unknown;
const step = softmaxAttentionStep as (...args: Any[]) => unknown;
const turn = rotary as (...args: Any[]) => unknown;
const implied = impliedAttention as (...args: Any[]) => unknown;
const make = kvCache as (...args: Any[]) => unknown;

const SIZES = {batchSize: 1, numHeads: 2, maxLength: 3, keyDim: 4, valueDim: 5};
const z = (...shape: number[]): tf.Tensor => tf.zeros(shape);
const x = (): tf.Tensor => z(2, 3, 5, 4);

function disposed(): tf.Tensor {
  const tensor = x();
  tensor.dispose();
  return tensor;
}

function disposedCache(): object {
  const cache = kvCache(SIZES);
  tf.dispose([cache.k, cache.v]);
  return cache;
}

const fullCache = () => {
  const token = [z(1, 2, 4), z(1, 2, 4), z(1, 2, 5)] as const;
  return softmaxAttentionStep(...token, kvCache({...SIZES, maxLength: 1})).cache;
};

const token = () => [z(1, 2, 4), z(1, 2, 4), z(1, 2, 5)];

/** What is called, the arguments, and the whole message. */
const CASES: [string, (...args: Any[]) => unknown, () => Any[], string][] = [
  [
    'softmaxAttention of rank 2',
    soft,
    () => [z(5, 4), z(5, 4), z(5, 4)],
    'softmaxAttention: expected q, k and v to be all of rank 4 ([B,H,N,.]) or all of rank 3 ([B,N,.], one head); got q [5,4], k [5,4], v [5,4].',
  ],
  [
    'softmaxAttention of mixed ranks',
    soft,
    () => [x(), z(2, 5, 4), x()],
    'softmaxAttention: expected q, k and v to be all of rank 4 ([B,H,N,.]) or all of rank 3 ([B,N,.], one head); got q [2,3,5,4], k [2,5,4], v [2,3,5,4].',
  ],
  [
    'softmaxAttention of two batch sizes',
    soft,
    () => [x(), z(1, 3, 5, 4), x()],
    'softmaxAttention: expected k.shape[0] (1) to equal q.shape[0] (2); got q [2,3,5,4], k [1,3,5,4].',
  ],
  [
    'softmaxAttention of grouped heads',
    soft,
    () => [x(), z(2, 1, 5, 4), z(2, 1, 5, 4)],
    'softmaxAttention: expected k.shape[1] (1) to equal q.shape[1] (3): grouped heads are not supported yet; got q [2,3,5,4], k [2,1,5,4].',
  ],
  [
    'softmaxAttention of grouped heads, BNHD',
    soft,
    () => [z(2, 5, 3, 4), z(2, 5, 1, 4), z(2, 5, 1, 4), {dataFormat: 'BNHD'}],
    'softmaxAttention: expected k.shape[2] (1) to equal q.shape[2] (3): grouped heads are not supported yet; got q [2,5,3,4], k [2,5,1,4].',
  ],
  [
    'softmaxAttention of two key dimensions',
    soft,
    () => [x(), z(2, 3, 5, 6), x()],
    'softmaxAttention: expected k.shape[3] (6) to equal q.shape[3] (4); got q [2,3,5,4], k [2,3,5,6].',
  ],
  [
    'softmaxAttention of more keys than values',
    soft,
    () => [x(), z(2, 3, 6, 4), x()],
    'softmaxAttention: expected v.shape[2] (5) to equal k.shape[2] (6); got k [2,3,6,4], v [2,3,5,4].',
  ],
  [
    'causal softmaxAttention of other keys than queries',
    soft,
    () => [x(), z(2, 3, 6, 4), z(2, 3, 6, 4), {causal: true}],
    'softmaxAttention: expected k.shape[2] (6) to equal q.shape[2] (5) when causal; got q [2,3,5,4], k [2,3,6,4].',
  ],
  [
    'softmaxAttention without features',
    soft,
    () => [z(2, 3, 5, 0), z(2, 3, 5, 0), x()],
    'softmaxAttention: expected q.shape[3] to be at least 1; got q [2,3,5,0].',
  ],
  [
    'softmaxAttention with a short mask',
    soft,
    () => [x(), x(), x(), {mask: z(2, 4)}],
    'softmaxAttention: expected mask to be of shape [B,Nk] = [2,5]; got [2,4].',
  ],
  [
    'softmaxAttention with a mask of rank 1',
    soft,
    () => [x(), x(), x(), {mask: z(2)}],
    'softmaxAttention: expected mask to be of shape [B,Nk] = [2,5]; got [2].',
  ],
  [
    'softmaxAttention with a string as mask',
    soft,
    () => [x(), x(), x(), {mask: 'left'}],
    "softmaxAttention: expected mask to be a tensor or nested arrays of numbers; got 'left'.",
  ],
  [
    'softmaxAttention with a mistyped option',
    soft,
    () => [x(), x(), x(), {masks: z(2, 5)}],
    "softmaxAttention: unknown option 'masks'; expected 'causal', 'mask', 'scale', 'dataFormat'.",
  ],
  [
    'softmaxAttention with causal = 1',
    soft,
    () => [x(), x(), x(), {causal: 1}],
    'softmaxAttention: expected causal to be true or false; got 1.',
  ],
  [
    'softmaxAttention with scale NaN',
    soft,
    () => [x(), x(), x(), {scale: Number.NaN}],
    'softmaxAttention: expected scale to be a finite number; got NaN.',
  ],
  [
    'softmaxAttention with a string as scale',
    soft,
    () => [x(), x(), x(), {scale: 'auto'}],
    "softmaxAttention: expected scale to be a finite number; got 'auto'.",
  ],
  [
    'softmaxAttention in an unknown format',
    soft,
    () => [x(), x(), x(), {dataFormat: 'NHWC'}],
    "softmaxAttention: expected dataFormat to be one of 'BHND', 'BNHD'; got 'NHWC'.",
  ],
  [
    'softmaxAttention with the mask as options',
    soft,
    () => [x(), x(), x(), z(2, 5)],
    'softmaxAttention: expected options to be an object; got a float32 tensor of shape [2,5].',
  ],
  [
    'softmaxAttention with options null',
    soft,
    () => [x(), x(), x(), null],
    'softmaxAttention: expected options to be an object; got null.',
  ],
  [
    'softmaxAttention without v',
    soft,
    () => [x(), x()],
    'softmaxAttention: expected v to be a tensor or nested arrays of numbers; got undefined.',
  ],
  [
    'softmaxAttention of a disposed tensor',
    soft,
    () => [disposed(), x(), x()],
    'softmaxAttention: expected q to be a live tensor; got a disposed one of shape [2,3,5,4].',
  ],
  [
    'softmaxAttention of ragged arrays',
    soft,
    () => [[[[1, 2], [3]]], z(1, 2, 2), z(1, 2, 2)],
    'softmaxAttention: expected q to be a regular nested array of shape [1,2,2]; got [3] inside it.',
  ],
  [
    'softmaxAttention of strings',
    soft,
    () => [[[['a']]], z(1, 1, 1), z(1, 1, 1)],
    "softmaxAttention: expected q to hold numbers; got 'a'.",
  ],

  [
    'softmaxAttentionStep of a sequence',
    step,
    () => [z(1, 2, 1, 4), z(1, 2, 4), z(1, 2, 5), kvCache(SIZES)],
    'softmaxAttentionStep: expected q, k and v to be of rank 3 ([B,H,.], one token); got q [1,2,1,4], k [1,2,4], v [1,2,5].',
  ],
  [
    'softmaxAttentionStep of two key dimensions',
    step,
    () => [z(1, 2, 4), z(1, 2, 3), z(1, 2, 5), kvCache(SIZES)],
    'softmaxAttentionStep: expected k.shape[2] (3) to equal q.shape[2] (4); got q [1,2,4], k [1,2,3].',
  ],
  [
    'softmaxAttentionStep with a cache for another batch',
    step,
    () => [z(2, 2, 4), z(2, 2, 4), z(2, 2, 5), kvCache(SIZES)],
    'softmaxAttentionStep: expected cache.k [2,2,0,4] and cache.v [2,2,0,5] to go with q, k and v; got cache.k [1,2,0,4], cache.v [1,2,0,5].',
  ],
  [
    'softmaxAttentionStep with a cache for other values',
    step,
    () => [z(1, 2, 4), z(1, 2, 4), z(1, 2, 6), kvCache(SIZES)],
    'softmaxAttentionStep: expected cache.k [1,2,0,4] and cache.v [1,2,0,6] to go with q, k and v; got cache.k [1,2,0,4], cache.v [1,2,0,5].',
  ],
  [
    'softmaxAttentionStep without a cache',
    step,
    () => token(),
    'softmaxAttentionStep: expected cache to be made by kvCache or an earlier step; got undefined.',
  ],
  [
    'softmaxAttentionStep with a linear state',
    step,
    () => [...token(), {s: z(1, 2, 4, 5), z: z(1, 2, 4)}],
    'softmaxAttentionStep: expected cache to be made by kvCache or an earlier step; got an object with keys s, z.',
  ],
  [
    'softmaxAttentionStep with a disposed cache',
    step,
    () => [...token(), disposedCache()],
    'softmaxAttentionStep: expected cache to be live; got a disposed one.',
  ],
  [
    'softmaxAttentionStep past maxLength',
    step,
    () => [...token(), fullCache()],
    'softmaxAttentionStep: expected at most maxLength (1) tokens in the cache; got 1 cached and 1 more. Make the cache with a larger maxLength.',
  ],
  [
    'softmaxAttentionStep with causal',
    step,
    () => [...token(), kvCache(SIZES), {causal: true}],
    "softmaxAttentionStep: unknown option 'causal'; expected 'scale', 'mask'.",
  ],
  [
    'softmaxAttentionStep with a long mask',
    step,
    () => [...token(), kvCache(SIZES), {mask: [1, 1]}],
    'softmaxAttentionStep: expected mask to be of shape [B] = [1]; got [2].',
  ],
  [
    'softmaxAttentionStep with an infinite scale',
    step,
    () => [...token(), kvCache(SIZES), {scale: Number.POSITIVE_INFINITY}],
    'softmaxAttentionStep: expected scale to be a finite number; got Infinity.',
  ],

  ['kvCache without sizes', make, () => [], 'kvCache: expected sizes to be an object; got null.'],
  [
    'kvCache without a key dimension',
    make,
    () => [{...SIZES, keyDim: 0}],
    'kvCache: expected keyDim to be a whole number of at least 1; got 0.',
  ],
  [
    'kvCache of a broken length',
    make,
    () => [{...SIZES, maxLength: 2.5}],
    'kvCache: expected maxLength to be a whole number of at least 1; got 2.5.',
  ],
  [
    'kvCache without heads',
    make,
    () => [{...SIZES, numHeads: undefined}],
    'kvCache: expected numHeads to be a whole number of at least 1; got undefined.',
  ],
  [
    'kvCache with a mistyped size',
    make,
    () => [{...SIZES, length: 3}],
    "kvCache: unknown option 'length'; expected 'batchSize', 'numHeads', 'maxLength', 'keyDim', 'valueDim'.",
  ],

  [
    'rotary of odd features',
    turn,
    () => [z(2, 3, 5, 3)],
    'rotary: expected an even number of features (x.shape[3]); got 3 in x [2,3,5,3].',
  ],
  [
    'rotary without features',
    turn,
    () => [z(2, 3, 5, 0)],
    'rotary: expected an even number of features (x.shape[3]); got 0 in x [2,3,5,0].',
  ],
  [
    'rotary of rank 2',
    turn,
    () => [z(5, 4)],
    'rotary: expected x to have rank 4 ([B,H,N,r]) or 3 ([B,N,r]); got [5,4].',
  ],
  [
    'rotary with a negative offset',
    turn,
    () => [x(), {offset: -1}],
    'rotary: expected offset to be a whole number of at least 0; got -1.',
  ],
  [
    'rotary with half an offset',
    turn,
    () => [x(), {offset: 0.5}],
    'rotary: expected offset to be a whole number of at least 0; got 0.5.',
  ],
  [
    'rotary with base 0',
    turn,
    () => [x(), {base: 0}],
    'rotary: expected base to be a finite number above 0; got 0.',
  ],
  [
    'rotary with an unknown pairing',
    turn,
    () => [x(), {pairing: 'full'}],
    "rotary: expected pairing to be one of 'half', 'interleaved'; got 'full'.",
  ],
  [
    'rotary in an unknown format',
    turn,
    () => [x(), {dataFormat: 'bhnd'}],
    "rotary: expected dataFormat to be one of 'BHND', 'BNHD'; got 'bhnd'.",
  ],
  [
    'rotary with a mistyped option',
    turn,
    () => [x(), {position: 3}],
    "rotary: unknown option 'position'; expected 'offset', 'base', 'pairing', 'dataFormat'.",
  ],
  [
    'rotary of a disposed tensor',
    turn,
    () => [disposed()],
    'rotary: expected x to be a live tensor; got a disposed one of shape [2,3,5,4].',
  ],

  [
    'impliedAttention of two key dimensions',
    implied,
    () => [x(), z(2, 3, 5, 6)],
    'impliedAttention: expected k.shape[3] (6) to equal q.shape[3] (4); got q [2,3,5,4], k [2,3,5,6].',
  ],
  [
    'causal impliedAttention of other keys than queries',
    implied,
    () => [x(), z(2, 3, 6, 4), {causal: true}],
    'impliedAttention: expected k.shape[2] (6) to equal q.shape[2] (5) when causal; got q [2,3,5,4], k [2,3,6,4].',
  ],
  [
    'impliedAttention with a short mask',
    implied,
    () => [x(), x(), {mask: z(2, 4)}],
    'impliedAttention: expected mask to be of shape [B,Nk] = [2,5]; got [2,4].',
  ],
  [
    'impliedAttention without normalisation',
    implied,
    () => [x(), x(), {normalize: false}],
    "impliedAttention: unknown option 'normalize'; expected 'featureMap', 'causal', 'mask', 'eps', 'featureMapWeights'.",
  ],
];

describeOnBackends('a wrong call says what is wrong and leaves nothing behind:', () => {
  test.each(CASES)('%s', (_, f, inputs, message) => {
    tf.tidy(() => {
      const args = inputs();
      const before = tf.memory().numTensors;
      expect(messageOf(() => f(...args))).toBe(message);
      expect(tf.memory().numTensors).toBe(before);
    });
  });
});
