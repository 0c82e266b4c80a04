/** The state of linear attention: all that a stream carries. */
import * as tf from '@tensorflow/tfjs-core';
import {check, checkInteger, checkOptions, show} from '../src/errors';
import {type FeatureMapLike, resolveFeatureMap} from './feature_maps/registry';

// The CommonJS build looks names of tfjs up at every use.
const Tensor = tf.Tensor;

/**
 * s = sum phi(k) v^T, [B,H,r',d], and z = sum phi(k), [B,H,r'], whatever the data format; r' is the feature dimension
 * after the map. A state is a value: operations return new ones and never change the one they were given, but for
 * linearAttentionStepInPlace. (A type, not an interface, so that tf.tidy takes functions that return one.)
 */
export type LinearAttentionState = {
  s: tf.Tensor4D;
  z: tf.Tensor3D;
};

/** Sizes of a state. */
export interface ZeroStateArgs {
  /** B. */
  batchSize: number;
  /** H. */
  numHeads: number;
  /** r', the feature dimension after the map; with `featureMap` r, before it. */
  keyDim: number;
  /** d. */
  valueDim: number;
  /** Name or FeatureMap, from which r' is derived. Default: keyDim is r' already. */
  featureMap?: FeatureMapLike;
}

/**
 * The state before the first token: s [B,H,r',d] and z [B,H,r'] of zeros, B H r' (d + 1) floats whatever the length
 * of the sequence will be. The caller disposes it (`disposeState`).
 *
 * @throws Error when a size is not a whole number of at least 1, for an unknown map or option.
 *
 * ```js
 * const state = tfla.zeroState({batchSize: 1, numHeads: 2, keyDim: 8, valueDim: 16});
 * console.log(state.s.shape, state.z.shape); // [1, 2, 8, 16] [1, 2, 8]
 * ```
 */
export function zeroState(args: ZeroStateArgs): LinearAttentionState {
  const fn = 'zeroState';
  check(args !== undefined, fn, () => 'expected args to be an object; got undefined.');
  checkOptions(fn, args, ['batchSize', 'numHeads', 'keyDim', 'valueDim', 'featureMap'], 'args');
  const {batchSize, numHeads, keyDim, valueDim, featureMap} = args;
  checkInteger(fn, 'batchSize', batchSize);
  checkInteger(fn, 'numHeads', numHeads);
  checkInteger(fn, 'keyDim', keyDim);
  checkInteger(fn, 'valueDim', valueDim);
  const features = featureMap === undefined ? keyDim : resolveFeatureMap(featureMap, fn).dim(keyDim);
  return {
    s: tf.zeros([batchSize, numHeads, features, valueDim]),
    z: tf.zeros([batchSize, numHeads, features]),
  };
}

/**
 * Disposes the tensors of a state, or of a softmax cache. Disposing twice is harmless.
 *
 * ```js
 * const state = tfla.zeroState({batchSize: 1, numHeads: 2, keyDim: 8, valueDim: 16});
 * tfla.disposeState(state);
 * ```
 *
 * @throws Error when the argument holds no tensor.
 */
export function disposeState(state: object): void {
  // Once a step: a walk through the object costs as much as a tenth of the step's arithmetic.
  let found = false;
  if (state !== null && typeof state === 'object' && !(state instanceof Tensor)) {
    for (const key in state) {
      const x: unknown = (state as {[name: string]: unknown})[key];
      if (x instanceof Tensor) {
        found = true;
        x.dispose();
      }
    }
  }
  check(found, 'disposeState', () => `expected state to be a state {s, z} or a cache; got ${show(state)}.`);
}
