import type * as tf from '@tensorflow/tfjs-core';
import {check} from '../../src/errors';
import type {FeatureMapContext} from './types';

/** A weight that the map cannot do without. */
export function weightOf(fn: string, ctx: FeatureMapContext | undefined, name: string): tf.Tensor {
  const weight = ctx?.weights?.[name];
  check(weight !== undefined, fn, () => `expected ctx.weights.${name}, a tensor; got undefined.`);
  return weight;
}
