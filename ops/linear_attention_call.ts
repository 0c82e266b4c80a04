/** What linearAttention and linearAttentionStep share: checks of a call, and the one kernel call itself. */
import * as tf from '@tensorflow/tfjs-core';
import {isNonZero} from '../src/conditions';
import {shapeOf, toFloat} from '../src/convert';
import {check, checkInteger, checkNumber, show} from '../src/errors';
import {select} from '../src/linear_attention/chunks';
import {asAttrs, asInputs, type DataFormat, LinearAttention} from '../src/linear_attention/spec';
import {ensureRegistered} from '../src/register';
import {type AttentionSizes, checkShape, type Input} from './attention_shapes';
import {applyFeatureMap, checkFeatureMapWeights} from './feature_maps/apply';
import {type FeatureMapLike, resolveFeatureMap} from './feature_maps/registry';
import type {FeatureMap} from './feature_maps/types';
import {runSegments, segmentLength} from './segmented_attention';
import type {Segment} from './segments';
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
  /** Tensors for the weights of a map that has some: by name, or in the order of the map's `weights()`. */
  featureMapWeights?: {[name: string]: tf.Tensor} | tf.Tensor[];
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
  positions?: Int32Array;
  mask?: Input;
  state?: {s: Input; z?: Input};
  /** False: the result's s and z may be placeholders. */
  returnState?: boolean;
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
  const weights = checkFeatureMapWeights(fn, map, featureMapWeights, sizes.r, sizes.H);
  return {map, eps, scale, weights};
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
  const {sizes, map, state} = call;
  const weightNames = Object.keys(call.weights ?? {});
  const mask = call.mask === undefined ? null : tf.cast(isNonZero(toFloat(call.mask)), 'float32');
  const z =
    state?.z === undefined ? () => tf.zeros([sizes.B, sizes.H, map.dim(sizes.r)]) : () => toFloat(state.z!);
  const whole: Segment = {
    ...{q, k, v, mask},
    state: state === undefined ? null : [toFloat(state.s), z()],
    weights: weightNames.map((name) => (call.weights as tf.NamedTensorMap)[name]),
    from: 0,
  };
  const length = segmentLength(map, sizes);
  const needsState = call.returnState !== false || length !== null;
  const run = (segment: Segment) => runSegment(call, segment, weightNames, needsState);
  const [output, s, zAfter] =
    length === null
      ? run(whole)
      : runSegments(
          {
            ...{causal: call.causal, length, run},
            axis: call.dataFormat === 'BHND' ? 2 : 1,
            hasMask: mask !== null,
            hasState: state !== undefined,
          },
          whole,
        );
  return {output, s, z: zAfter};
}

/** Maps the queries and keys of a part of a call's sequence, where the kernel does not, and runs the kernel. */
function runSegment(call: Call, segment: Segment, weightNames: string[], returnState: boolean): tf.Tensor[] {
  const {fn, map, dataFormat} = call;
  const {q, k, v, mask, state} = segment;
  const [sequenceAxis, headAxis] = dataFormat === 'BHND' ? [2, 1] : [1, 2];
  const [Nq, Nk] = [q.shape[sequenceAxis], k.shape[sequenceAxis]];
  let queries = q;
  let keys = k;
  if (map.pointwise === undefined) {
    const weights: tf.NamedTensorMap = {};
    weightNames.forEach((name, i) => {
      weights[name] = segment.weights[i];
    });
    const context = (N: number) => ({
      ...{sequenceAxis, headAxis},
      offset: call.offset + segment.from,
      ...(call.positions === undefined ? {} : {positions: positionsOf(call, segment.from, N)}),
      mask: mask ?? undefined,
      weights: weightNames.length === 0 ? undefined : weights,
      normalized: call.normalize,
    });
    // Nothing under the mask may reach the map: it may sum over the sequence. The kernel then selects the features.
    const kept =
      mask !== null && Nk > 0
        ? isNonZero(tf.reshape(mask, dataFormat === 'BHND' ? [-1, 1, Nk, 1] : [-1, Nk, 1, 1]))
        : null;
    queries = applyFeatureMap(fn, map, 'queries', q, context(Nq));
    keys = applyFeatureMap(fn, map, 'keys', select(kept, k), context(Nk));
  }
  const attrs = {
    updateRule: 'linear' as const,
    causal: call.causal && Nq === Nk,
    featureMap: map.pointwise ?? ('identity' as const),
    normalize: call.normalize,
    eps: call.normalize ? call.eps : 0,
    scale: call.normalize ? 1 : call.scale,
    dataFormat,
    hasMask: mask !== null,
    hasState: state !== null,
    returnState,
  };
  // One placeholder for all that is absent: making a tensor takes longer than a short sequence's arithmetic.
  const none = mask === null || state === null ? tf.zeros([1]) : q;
  const [s, z] = state ?? [none, none];
  const inputs = {q: queries, k: keys, v, mask: mask ?? none, s, z};
  ensureRegistered();
  return (tf.engine().runKernel(LinearAttention, asInputs(inputs), asAttrs(attrs)) as tf.Tensor[]).slice(
    0,
    3,
  );
}

/** Positions of N tokens from `from` on, batch row by batch row. */
function positionsOf({positions, sizes: {B}}: Call, from: number, N: number): Int32Array {
  const all = positions as Int32Array;
  const length = all.length / B;
  const part = new Int32Array(B * N);
  for (let b = 0; b < B; b++) {
    part.set(all.subarray(b * length + from, b * length + from + N), b * N);
  }
  return part;
}

/** Checks the position of the first token, or of every token [B*N], where N is Nq and Nk. */
export function checkPositions(
  fn: string,
  offset: unknown,
  positions: unknown,
  {B, Nq, Nk}: AttentionSizes,
): void {
  checkInteger(fn, 'offset', offset, 0);
  check(
    positions === undefined ||
      (positions instanceof Int32Array &&
        Nq === Nk &&
        positions.length === B * Nq &&
        !positions.some((p) => p < 0)),
    fn,
    () =>
      `expected positions to be an Int32Array of B N (${B * Nq}) numbers of at least 0, with Nq = Nk; got ${show(positions)}.`,
  );
}

/** Checks a mask's shape and dtype. */
export function checkMask(fn: string, mask: unknown, shape: number[], letters: string): void {
  if (mask !== undefined) {
    shapeOf(fn, 'mask', mask);
    checkShape(fn, 'mask', mask, shape, letters);
  }
}
