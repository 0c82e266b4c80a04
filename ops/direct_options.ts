/**
 * The short ways of linearAttention and linearAttentionStep: a short call takes microseconds, so its checks must not take
 * longer than its arithmetic. What is of the common kind and right is recognised here; everything else, wrong calls
 * included, gets null and goes the long way, where errors are worded.
 */
import * as tf from '@tensorflow/tfjs-core';
import {isPlain} from '../src/errors';
import {POINTWISE_MAPS, type PointwiseMap} from '../src/pointwise';
import {type FeatureMapLike, resolveFeatureMap} from './feature_maps/registry';
import type {FeatureMap} from './feature_maps/types';

/** Options that both calls share, as a kernel takes them. */
export interface DirectOptions {
  featureMap: PointwiseMap;
  normalize: boolean;
  eps: number;
  scale: number;
}

// The CommonJS build looks names of tfjs up at every use; this one is used five times a step.
const Tensor = tf.Tensor;

const SHARED = ['featureMap', 'normalize', 'eps', 'scale', 'offset'];
const named = new Map<string, FeatureMap>();

/** The kernel's attributes from options that are all known (shared or in `others`), plain and right; else null. */
export function directOptions(
  fn: string,
  options: object | null,
  others: readonly string[],
): DirectOptions | null {
  if (!isPlain(options)) {
    return null;
  }
  for (const key in options) {
    if (!SHARED.includes(key) && !others.includes(key)) {
      return null;
    }
  }
  const given = options as {[name: string]: unknown};
  const {featureMap = 'elu', normalize = true, scale = 1, offset = 0} = given;
  const map = pointwiseMap(fn, featureMap);
  if (map?.pointwise === undefined) {
    return null;
  }
  const {eps = map.eps ?? 1e-6} = given;
  const right =
    typeof normalize === 'boolean' &&
    typeof scale === 'number' &&
    Number.isFinite(scale) &&
    typeof eps === 'number' &&
    eps >= 0 &&
    eps < Number.POSITIVE_INFINITY &&
    Number.isSafeInteger(offset) &&
    (offset as number) >= 0;
  return right
    ? {featureMap: map.pointwise, normalize, eps: normalize ? eps : 0, scale: normalize ? 1 : scale}
    : null;
}

/** The map of a pointwise map's name, or a FeatureMap that was checked; null for other names. */
function pointwiseMap(fn: string, featureMap: unknown): FeatureMap | null {
  if (typeof featureMap !== 'string') {
    return resolveFeatureMap(featureMap as FeatureMapLike, fn);
  }
  if (!(POINTWISE_MAPS as readonly string[]).includes(featureMap)) {
    return null;
  }
  let map = named.get(featureMap);
  if (map === undefined) {
    map = resolveFeatureMap(featureMap);
    named.set(featureMap, map);
  }
  return map;
}

/** True of a float32 tensor of that rank that was not disposed. */
export const isLive = (x: unknown, rank: number): x is tf.Tensor =>
  x instanceof Tensor && x.dtype === 'float32' && x.shape.length === rank && !x.isDisposed;
