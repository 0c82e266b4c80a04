/**
 * The features of FAVOR+, from u = W x^ [..,m] and h = |x^|^2 / 2 [..,1], where x^ = x r^(-1/4):
 *
 *     positive    exp(u - h) / sqrt(m)
 *     hyperbolic  [exp(u - h), exp(-u - h)] / sqrt(2m)
 *     trig        exp(h) [cos(u), sin(u)] / sqrt(m)
 *     relu        relu(u) + 1e-3
 *
 * Queries may be multiplied by any positive number per row, which cancels in the quotient: `stabilised` forms drop h and
 * bring the largest exponent of the row to 0. Keys never: what is common to all keys depends on later ones.
 */
import * as tf from '@tensorflow/tfjs-core';
import {cosine, sine} from '../../src/circular';
import {offTape} from '../../src/conditions';
import {check} from '../../src/errors';
import {exponential} from '../../src/recomputed';

/** Which features `favor` makes of its directions. */
export type FavorKind = 'positive' | 'hyperbolic' | 'trig' | 'relu';

export const FAVOR_KINDS: readonly FavorKind[] = ['positive', 'hyperbolic', 'trig', 'relu'];

/** Added to relu features, as performers do, so that no denominator is 0. */
const RELU_FLOOR = 1e-3;

/** exp of more overflows float32 once sums are taken. */
const LARGEST_EXPONENT = 80;

export interface Projected {
  /** W x^, [..,m] */
  u: tf.Tensor;
  /** |x^|^2 / 2, [..,1] */
  h: tf.Tensor;
  stabilised: boolean;
}

/** [..,m] to [..,m or 2m]. To be called inside a tidy. */
export function favorFeatures(fn: string, kind: FavorKind, {u, h, stabilised}: Projected): tf.Tensor {
  const axis = u.rank - 1;
  const m = u.shape[axis];
  switch (kind) {
    case 'positive': {
      const less = stabilised ? offTape(() => tf.max(u, axis, true)) : h;
      return tf.mul(exponential(tf.sub(u, less)), 1 / Math.sqrt(m));
    }
    case 'hyperbolic': {
      const less = stabilised ? offTape(() => tf.max(tf.abs(u), axis, true)) : h;
      const both = tf.concat([tf.sub(u, less), tf.sub(tf.neg(u), less)], axis);
      return tf.mul(exponential(both), 1 / Math.sqrt(2 * m));
    }
    case 'trig': {
      const waves = tf.mul(tf.concat([cosine(u), sine(u)], axis), 1 / Math.sqrt(m));
      if (stabilised) {
        return waves;
      }
      refuseLargeNorms(fn, h);
      return tf.mul(waves, exponential(h));
    }
    case 'relu':
      return tf.add(tf.relu(u), RELU_FLOOR);
  }
}

/**
 * exp(h) overflows where |x^| is large, and a wrong picture of attention comes long before. Only where reading does not
 * wait for a GPU; there the infinities show.
 */
function refuseLargeNorms(fn: string, h: tf.Tensor): void {
  if (h.size === 0 || !['cpu', 'wasm', 'tensorflow'].includes(tf.getBackend())) {
    return;
  }
  const [largest] = offTape(() => tf.max(h)).dataSync();
  check(
    !(largest > LARGEST_EXPONENT),
    fn,
    () =>
      `expected |x|^2 / (2 sqrt(r)) of at most ${LARGEST_EXPONENT} with kind 'trig', whose features grow as its exponential; ` +
      `got ${largest.toPrecision(3)}. Kinds 'positive' and 'hyperbolic' stay finite.`,
  );
}
