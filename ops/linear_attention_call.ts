/** What linearAttention and linearAttentionStep share: checks of a call, and the one kernel call itself. */
import * as tf from '@tensorflow/tfjs-core';
import {isNonZero} from '../src/conditions';
import {shapeOf, toFloat} from '../src/convert';
import {check, checkNumber, show} from '../src/errors';
import {select} from '../src/linear_attention/chunks';
import {asAttrs, asInputs, type DataFormat, LinearAttention} from '../src/linear_attention/spec';
import {ensureRegistered} from '../src/register';
import {type AttentionSizes, checkShape, type Input} from './attention_shapes';
import {applyFeatureMap, checkFeatureMapWeights} from './feature_maps/apply';
import {type FeatureMapLike, resolveFeatureMap} from './feature_maps/registry';
import type {FeatureMap} from './feature_maps/types';
import type {LinearAttentionState} from './state';

/** Options that both ops take. */
export interface SharedOptions {
  /** Name or FeatureMap; 'identity' for inputs that are mapped already. Default 'elu'. */
  featureMap?: FeatureMapLike;
  /** Divide by the denominator phi(q).z + eps. Default true. */
  normalize?: boolean;
  /** Added to the denominator, at least 0. Default: the map's own eps, else 1e-6. Unused when not `normalize`. */
  eps?: number;
  /** Multiplies phi(q).phi(k). Default 1. Cancels when `normalize`, and is ignored then. */
  scale?: number;
  /** Tensors for the weights of a map that has some, by name. */
  featureMapWeights?: {[name: string]: tf.Tensor};
}

/** An initial state; z may be left out when not normalising (zeros then). */
export type InitialState = {s: Input; z?: Input} | LinearAttentionState;

/** A checked call. Everything is still as the caller gave it: no tensor was made. */
export interface Call {
  fn: string;
  sizes: AttentionSizes;
  map: FeatureMap;
  causal: boolean;
  normalize: boolean;
  eps: number;
  scale: number;
  dataFormat: DataFormat;
  offset: number;
  mask?: Input;
  state?: {s: Input; z?: Input};
  weights?: tf.NamedTensorMap;
}

/** Checks the options that both ops take, and returns them with their defaults. */
export function checkShared(
  fn: string,
  options: SharedOptions,
  sizes: AttentionSizes,
): Pick<Call, 'map' | 'eps' | 'scale' | 'weights'> {
  const map = resolveFeatureMap(options.featureMap ?? 'elu', fn);
  const {eps = map.eps ?? 1e-6, scale = 1, featureMapWeights} = options;
  checkNumber(fn, 'eps', eps, {min: 0});
  checkNumber(fn, 'scale', scale);
  checkFeatureMapWeights(fn, map, featureMapWeights, sizes.r, sizes.H);
  return {map, eps, scale, weights: featureMapWeights};
}

/** Checks a state [B,H,r',d], [B,H,r'] against a call's sizes. */
export function checkState(
  fn: string,
  name: string,
  state: unknown,
  map: FeatureMap,
  {B, H, r, d}: AttentionSizes,
  normalize: boolean,
): void {
  const given = state as {s?: unknown; z?: unknown} | null;
  check(
    given !== null &&
      typeof given === 'object' &&
      !(given instanceof tf.Tensor) &&
      given.s !== undefined &&
      Object.keys(given).every((key) => key === 's' || key === 'z'),
    fn,
    () => `expected ${name} to be a state {s, z}; got ${show(state)}.`,
  );
  const features = map.dim(r);
  checkShape(fn, `${name}.s`, given.s, [B, H, features, d], "[B,H,r',d]");
  check(
    given.z !== undefined || !normalize,
    fn,
    () => `expected ${name}.z, which only normalize = false can do without; got undefined.`,
  );
  if (given.z !== undefined) {
    checkShape(fn, `${name}.z`, given.z, [B, H, features], "[B,H,r']");
  }
}

/** The state's values as new tensors of the caller's. */
interface KernelResult {
  output: tf.Tensor;
  s: tf.Tensor;
  z: tf.Tensor;
}

/** Runs a checked call on q, k, v in the call's rank-4 layout. To be called inside a tidy. */
export function runCall(call: Call, q: tf.Tensor, k: tf.Tensor, v: tf.Tensor): KernelResult {
  const {fn, sizes, map, dataFormat, state, weights, offset} = call;
  const {B, H, Nk, r} = sizes;
  const mask = call.mask === undefined ? undefined : tf.cast(isNonZero(toFloat(call.mask)), 'float32');
  let queries = q;
  let keys = k;
  if (map.pointwise === undefined) {
    const context = {
      sequenceAxis: dataFormat === 'BHND' ? 2 : 1,
      headAxis: dataFormat === 'BHND' ? 1 : 2,
      offset,
      mask,
      weights,
    };
    // Nothing under the mask may reach the map: it may sum over the sequence. The kernel then selects the features.
    const kept =
      mask !== undefined && Nk > 0
        ? isNonZero(tf.reshape(mask, dataFormat === 'BHND' ? [B, 1, Nk, 1] : [B, Nk, 1, 1]))
        : null;
    queries = applyFeatureMap(fn, map, 'queries', q, context);
    keys = applyFeatureMap(fn, map, 'keys', select(kept, k), context);
  }
  const attrs = {
    updateRule: 'linear' as const,
    causal: call.causal,
    featureMap: map.pointwise ?? ('identity' as const),
    normalize: call.normalize,
    eps: call.normalize ? call.eps : 0,
    scale: call.normalize ? 1 : call.scale,
    dataFormat,
    hasMask: mask !== undefined,
    hasState: state !== undefined,
  };
  const inputs = {
    q: queries,
    k: keys,
    v,
    mask: mask ?? tf.zeros([1]),
    s: state === undefined ? tf.zeros([1]) : toFloat(state.s),
    z:
      state === undefined
        ? tf.zeros([1])
        : state.z === undefined
          ? tf.zeros([B, H, map.dim(r)])
          : toFloat(state.z),
  };
  ensureRegistered();
  const [output, s, z] = tf
    .engine()
    .runKernel(LinearAttention, asInputs(inputs), asAttrs(attrs)) as tf.Tensor[];
  return {output, s, z};
}

/** Checks a mask's shape and dtype. */
export function checkMask(fn: string, mask: unknown, shape: number[], letters: string): void {
  if (mask !== undefined) {
    shapeOf(fn, 'mask', mask);
    checkShape(fn, 'mask', mask, shape, letters);
  }
}
