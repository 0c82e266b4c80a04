import * as tf from '@tensorflow/tfjs-core';
import {check, checkInteger, checkOptions, show} from '../../src/errors';
import type {FeatureMap, FeatureMapContext} from './types';

/** Of `featureMaps.cosFormer`. */
export interface CosFormerConfig {
  /** M: positions are below it. Weights fall to 0 at distance M. */
  maxLength: number;
}

/**
 * relu(x) weighted by position: [relu(x) cos(pi i / 2M), relu(x) sin(pi i / 2M)], r' = 2r, so that the similarity of
 * positions i and j is relu(q).relu(k) cos(pi (i - j) / 2M): near tokens count more. Beyond M weights would be negative,
 * so positions of M and more are an error.
 *
 * Positions are those of `offset` and `positions` in the call; the layer hands on where a stream stands.
 *
 * Qin et al. 2022, https://arxiv.org/abs/2202.08791, section 3.2.
 *
 * ```js
 * const x = tf.tensor4d([1, 1, 1], [1, 1, 3, 1]);
 * tfla.featureMaps.cosFormer({maxLength: 3}).keys(x).print(); // rows [1, 0], [0.866, 0.5], [0.5, 0.866]
 * ```
 */
export function cosFormer(config: CosFormerConfig): FeatureMap {
  const fn = 'featureMaps.cosFormer';
  checkOptions(fn, config, ['maxLength'], 'config');
  const maxLength = config?.maxLength;
  checkInteger(fn, 'maxLength', maxLength);
  const map = (x: tf.Tensor, ctx?: FeatureMapContext) =>
    tf.tidy(() => {
      const {cos, sin} = tables(fn, x, maxLength, ctx ?? {});
      const positive = tf.relu(x);
      return tf.concat([tf.mul(positive, cos), tf.mul(positive, sin)], x.rank - 1);
    });
  return {
    name: 'cosFormer',
    dim: (r) => 2 * r,
    queries: map,
    keys: map,
    getConfig: () => ({maxLength}),
  };
}

/** cos and sin of each row's angle, in a shape that broadcasts against x. */
function tables(
  fn: string,
  x: tf.Tensor,
  maxLength: number,
  {sequenceAxis = 2, offset = 0, positions}: FeatureMapContext,
): {cos: tf.Tensor; sin: tf.Tensor} {
  const [batch, length] = [x.shape[0], x.shape[sequenceAxis]];
  const perRow = positions !== undefined;
  const at = positions ?? Int32Array.from({length}, (_, i) => offset + i);
  check(
    at.length === (perRow ? batch * length : length),
    fn,
    () => `expected ctx.positions to have ${batch * length} values (batch x length); got ${show(positions)}.`,
  );
  const highest = at.reduce((most, position) => Math.max(most, position), 0);
  check(
    highest < maxLength,
    fn,
    () => `expected positions below maxLength (${maxLength}); got position ${highest}.`,
  );
  const shape = x.shape.map((size, axis) => (axis === sequenceAxis || (perRow && axis === 0) ? size : 1));
  const table = (f: (angle: number) => number) =>
    tf.tensor(
      Float32Array.from(at, (position) => f((Math.PI * position) / (2 * maxLength))),
      shape,
    );
  return {cos: table(Math.cos), sin: table(Math.sin)};
}
