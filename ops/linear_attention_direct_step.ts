/**
 * The short way of linearAttentionStep: a step takes microseconds, so its checks must not take longer than its
 * arithmetic. Calls of the common kind are recognised here; everything else, wrong calls included, gets null and goes
 * the long way, where errors are worded.
 */
import * as tf from '@tensorflow/tfjs-core';
import {LinearAttentionStep, type LinearAttentionStepAttrs, runStep} from '../src/linear_attention/step';
import {POINTWISE_MAPS} from '../src/pointwise';
import {type FeatureMapLike, resolveFeatureMap} from './feature_maps/registry';
import type {FeatureMap} from './feature_maps/types';
import type {LinearAttentionState} from './state';

const DEFAULTS: LinearAttentionStepAttrs = {featureMap: 'elu', normalize: true, eps: 1e-6, scale: 1};
const named = new Map<string, FeatureMap>();

/** The result, or null when the call is not float32 tensors of matching shapes with plain options. */
export function directStep(
  q: unknown,
  k: unknown,
  v: unknown,
  state: unknown,
  options: object | undefined,
): {output: tf.Tensor3D; state: LinearAttentionState} | null {
  const {s: s0, z: z0} = (state ?? {}) as {s?: unknown; z?: unknown};
  if (!isLive(q, 3) || !isLive(k, 3) || !isLive(v, 3) || !isLive(s0, 4) || !isLive(z0, 3)) {
    return null;
  }
  const [B, H, r] = q.shape as number[];
  const [, , d] = v.shape as number[];
  if (
    !(B * H * r * d > 0) ||
    !has(k.shape, B, H, r) ||
    !has(v.shape, B, H, d) ||
    !has(s0.shape, B, H, r) ||
    s0.shape[3] !== d ||
    !has(z0.shape, B, H, r)
  ) {
    return null;
  }
  const attrs = options === undefined ? DEFAULTS : attrsOf(options as {[name: string]: unknown});
  if (attrs === null || tf.getKernel(LinearAttentionStep, tf.getBackend()) == null) {
    return null;
  }
  for (const key in state as object) {
    if (key !== 's' && key !== 'z') {
      return null;
    }
  }
  const [output, s, z] = runStep({q, k, v, s: s0, z: z0}, attrs);
  return {output: output as tf.Tensor3D, state: {s: s as tf.Tensor4D, z: z as tf.Tensor3D}};
}

const isLive = (x: unknown, rank: number): x is tf.Tensor =>
  x instanceof tf.Tensor && x.dtype === 'float32' && x.shape.length === rank && !x.isDisposed;

const has = (shape: number[], a: number, b: number, c: number): boolean =>
  shape[0] === a && shape[1] === b && shape[2] === c;

/** Attributes from options that are all known, plain and right; else null. */
function attrsOf(options: {[name: string]: unknown}): LinearAttentionStepAttrs | null {
  for (const key in options) {
    if (!(key in DEFAULTS) && key !== 'offset') {
      return null;
    }
  }
  const {featureMap = 'elu', normalize = true, scale = 1, offset = 0} = options;
  const map = pointwiseMap(featureMap);
  if (map?.pointwise === undefined) {
    return null;
  }
  const {eps = map.eps ?? 1e-6} = options;
  const right =
    typeof normalize === 'boolean' &&
    typeof scale === 'number' &&
    Number.isFinite(scale) &&
    typeof eps === 'number' &&
    eps >= 0 &&
    eps < Number.POSITIVE_INFINITY &&
    Number.isSafeInteger(offset) &&
    (offset as number) >= 0;
  return right ? {featureMap: map.pointwise, normalize, eps, scale: normalize ? 1 : scale} : null;
}

/** The map of a pointwise map's name, or a FeatureMap that was checked; null for other names. */
function pointwiseMap(featureMap: unknown): FeatureMap | null {
  if (typeof featureMap !== 'string') {
    return resolveFeatureMap(featureMap as FeatureMapLike, 'linearAttentionStep');
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
