import * as tf from '@tensorflow/tfjs-core';
import {checkInteger, checkOptions} from '../../src/errors';
import {rowWise} from './row_wise';
import type {FeatureMap} from './types';

/** Of `featureMaps.dpfp`. */
export interface DpfpConfig {
  /** Products with the neighbours at distances 1 to nu. Default 1. */
  nu?: number;
}

/**
 * Deterministic parameter-free projection: with u = [relu(x), relu(-x)], the products u_i u_(i-j) for j = 1..nu, indices
 * modulo 2r. r' = 2 r nu features, sparse and never negative.
 *
 * Schlag et al. 2021, https://arxiv.org/abs/2102.11174, section 5.3.
 *
 * ```js
 * tfla.featureMaps.dpfp({nu: 1}).queries(tf.tensor2d([[2, -3]])).print(); // [[6, 0, 0, 0]]
 * ```
 */
export function dpfp(config: DpfpConfig = {}): FeatureMap {
  const fn = 'featureMaps.dpfp';
  checkOptions(fn, config, ['nu']);
  const {nu = 1} = config;
  checkInteger(fn, 'nu', nu);
  return rowWise({
    name: 'dpfp',
    dim: (r) => 2 * r * nu,
    map: (x) =>
      tf.tidy(() => {
        const axis = x.rank - 1;
        const u = tf.concat([tf.relu(x), tf.relu(tf.neg(x))], axis);
        return tf.concat(
          Array.from({length: nu}, (_, j) => tf.mul(u, roll(u, j + 1))),
          axis,
        );
      }),
    getConfig: () => ({nu}),
  });
}

/** roll(x, j)_i = x_(i-j mod n), along the last axis. */
function roll(x: tf.Tensor, shift: number): tf.Tensor {
  const axis = x.rank - 1;
  const n = x.shape[axis];
  const by = shift % n;
  if (by === 0) {
    return x;
  }
  const piece = (from: number, size: number) =>
    tf.slice(x, [...x.shape.slice(0, -1).map(() => 0), from], [...x.shape.slice(0, -1), size]);
  return tf.concat([piece(n - by, by), piece(0, n - by)], axis);
}
