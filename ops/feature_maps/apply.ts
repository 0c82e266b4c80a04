/** What the ops need around a feature map: its weights checked, and a map that is not pointwise applied. */
import * as tf from '@tensorflow/tfjs-core';
import {shapeOf} from '../../src/convert';
import {check, show, showShape} from '../../src/errors';
import type {FeatureMap, FeatureMapContext} from './types';

/**
 * `featureMapWeights` by name, checked against what the map declares; given by name or as a list in the declared order.
 * They may be left out only where the map can do without: when it has none, or when all are constants that it holds
 * itself (random projections).
 */
export function checkFeatureMapWeights(
  fn: string,
  map: FeatureMap,
  weights: unknown,
  inputDim: number,
  numHeads: number,
): tf.NamedTensorMap | undefined {
  const declared = map.weights?.(inputDim, numHeads) ?? [];
  const list = declared.map(({name, shape}) => `${name} ${showShape(shape)}`).join(', ');
  if (weights === undefined) {
    check(
      !declared.some(({trainable}) => trainable),
      fn,
      () => `feature map '${map.name}' needs featureMapWeights {${list}}; got none.`,
    );
    return undefined;
  }
  check(
    declared.length > 0,
    fn,
    () => `feature map '${map.name}' has no weights, but featureMapWeights were given: ${show(weights)}.`,
  );
  check(
    weights !== null && typeof weights === 'object' && !(weights instanceof tf.Tensor),
    fn,
    () => `expected featureMapWeights to be an object of tensors {${list}}; got ${show(weights)}.`,
  );
  if (Array.isArray(weights)) {
    check(
      weights.length === declared.length,
      fn,
      () => `expected featureMapWeights to be ${declared.length} tensors, ${list}; got ${weights.length}.`,
    );
  }
  const given = (
    Array.isArray(weights) ? Object.fromEntries(declared.map(({name}, i) => [name, weights[i]])) : weights
  ) as tf.NamedTensorMap;
  const unknown = Object.keys(given).find((key) => !declared.some(({name}) => name === key));
  check(
    unknown === undefined,
    fn,
    () => `unknown weight '${unknown}' in featureMapWeights; feature map '${map.name}' has ${list}.`,
  );
  for (const {name, shape} of declared) {
    const got = shapeOf(fn, `featureMapWeights.${name}`, given[name]);
    check(
      got.length === shape.length && got.every((size, axis) => size === shape[axis]),
      fn,
      () => `expected featureMapWeights.${name} to be of shape ${showShape(shape)}; got ${showShape(got)}.`,
    );
  }
  return given;
}

/** phi(q) or phi(k) of a map that is not pointwise, with its last axis checked. */
export function applyFeatureMap(
  fn: string,
  map: FeatureMap,
  side: 'queries' | 'keys',
  x: tf.Tensor,
  context: FeatureMapContext,
): tf.Tensor {
  const wanted = [...x.shape.slice(0, -1), map.dim(x.shape[x.rank - 1])];
  if (x.size === 0) {
    return tf.zeros(wanted); // backends disagree about ops on nothing
  }
  const features = map[side](x, context);
  check(
    features.rank === x.rank && features.shape.every((size, axis) => size === wanted[axis]),
    fn,
    () =>
      `expected feature map '${map.name}' to return ${side} of shape ${showShape(wanted)}; got ${showShape(features.shape)}.`,
  );
  return features;
}
