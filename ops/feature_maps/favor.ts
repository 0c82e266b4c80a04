import * as tf from '@tensorflow/tfjs-core';
import {shapeOf} from '../../src/convert';
import {check, checkBoolean, checkInteger, checkOneOf, checkOptions, showShape} from '../../src/errors';
import {evenProduct} from '../../src/even_product';
import {mixSeed} from '../../src/random';
import {FAVOR_KINDS, type FavorKind, favorFeatures} from './favor_features';
import {drawProjection} from './projection';
import type {FeatureMap, FeatureMapContext} from './types';

/** Of `featureMaps.favor`. */
export interface FavorConfig {
  /** m, the number of random directions. Default ceil(r ln r). */
  numFeatures?: number;
  /** Default 'positive'. 'hyperbolic' and 'trig' have two features per direction. 'relu' does not approximate softmax. */
  kind?: FavorKind;
  /** Of the directions. Default 0. */
  seed?: number;
  /** Directions orthogonal within blocks of r: less variance. Default true. */
  orthogonal?: boolean;
  /** Scale each query's features by a number of its own, which cancels; not done where `normalize` is false. Default true. */
  stabilize?: boolean;
  /** The directions, of shape [numFeatures, r], instead of random ones. Copied. */
  projection?: tf.TensorLike | tf.Tensor;
}

const FN = 'featureMaps.favor';

/**
 * FAVOR+ random features, an *approximation of softmax attention*: with m directions w,
 * phi(q).phi(k) = exp(q.k / sqrt(r)) on average, for example by phi(x) = exp(w.x^ - |x^|^2 / 2) / sqrt(m),
 * x^ = x r^(-1/4) (kind 'positive'). More features, less variance.
 *
 * It is near softmax for small norms only. The variance grows as exp(|q^ + k^|^2): at q, k ~ N(0,1) with r = 16 and 4096
 * tokens, every kind is further from softmax attention than the plain mean of the values; r = 128, m = 1024 and 24 tokens
 * give relative errors of 70 to 150 %, by inputs and by who measured. Train with it, or scale queries and keys down, and
 * look at the error first.
 *
 * 'positive' and 'hyperbolic' stay finite at any norm that float32 holds, since keys only underflow; where all do, the
 * output is 0. 'trig' grows as exp(|x^|^2 / 2): larger |x^|^2 / 2 than 80 are an error (on webgl and webgpu, infinities).
 *
 * Nothing is shared between keys, heads or examples, so that causal use is exact: no later token changes an output.
 * eps is 0. The directions are drawn in plain JavaScript from `seed`; in a layer they are a saved, non-trainable weight,
 * `projection` [m,r], the same in training, evaluation and streams until the layer's `redraw`. With `stabilize` false
 * queries(x).keys(y) is the unbiased estimator itself.
 *
 * Choromanski et al. 2021, https://arxiv.org/abs/2009.14794, section 2 and Lemma 1.
 *
 * ```js
 * const featureMap = tfla.featureMaps.favor({numFeatures: 64, seed: 1});
 * const x = tf.randomNormal([1, 2, 10, 8], 0, 0.5);
 * tfla.linearAttention(x, x, x, {featureMap, causal: true});
 * ```
 *
 * @throws Error for unknown options and kinds, wrong sizes, a projection of another shape.
 */
export function favor(config: FavorConfig = {}): FeatureMap {
  const c = checked(config);
  const {kind, seed, orthogonal, stabilize, projection} = c;
  const drawn = new Map<number, Float32Array>();
  const directions = (r: number): number => c.numFeatures ?? Math.max(1, Math.ceil(r * Math.log(r)));
  const constants = (r: number): Float32Array => {
    check(
      projection === null || projection.r === r,
      FN,
      () =>
        `expected projection to be of shape [numFeatures, ${r}]; got [${c.numFeatures},${projection?.r}].`,
    );
    const known = projection?.values ?? drawn.get(r) ?? drawProjection(directions(r), r, seed, orthogonal);
    drawn.set(r, known);
    return known;
  };
  const features = (x: tf.Tensor, ctx: FeatureMapContext | undefined, stabilised: boolean): tf.Tensor =>
    tf.tidy(() => {
      const r = x.shape[x.rank - 1];
      const m = directions(r);
      const W = ctx?.weights?.['projection'] ?? tf.tensor(constants(r), [m, r]);
      const scaled = tf.mul(x, r ** -0.25);
      // Transposed first: on wasm only the plain product of two matrices is fast.
      const u = evenProduct(tf.reshape(scaled, [-1, r]), tf.transpose(W));
      return favorFeatures(FN, kind, {
        u: tf.reshape(u, [...x.shape.slice(0, -1), m]),
        h: tf.mul(tf.sum(tf.mul(scaled, scaled), x.rank - 1, true), 0.5),
        stabilised,
      });
    });
  return {
    name: 'favor',
    eps: 0,
    dim: (r) => (kind === 'hyperbolic' || kind === 'trig' ? 2 : 1) * directions(r),
    weights: (r) => [
      {name: 'projection', shape: [directions(r), r], initializer: constants(r), trainable: false},
    ],
    queries: (x, ctx) => features(x, ctx, stabilize && ctx?.normalized !== false),
    keys: (x, ctx) => features(x, ctx, false),
    redraw: (r, _, newSeed) => ({
      projection: drawProjection(directions(r), r, mixSeed(seed, newSeed), orthogonal),
    }),
    getConfig: () => ({
      ...(c.numFeatures === null ? {} : {numFeatures: c.numFeatures}),
      ...{kind, seed, orthogonal, stabilize},
      ...(projection === null ? {} : {projection: rowsOf(projection)}),
    }),
  };
}

interface Checked {
  numFeatures: number | null;
  kind: FavorKind;
  seed: number;
  orthogonal: boolean;
  stabilize: boolean;
  projection: {values: Float32Array; r: number} | null;
}

function checked(config: FavorConfig): Checked {
  checkOptions(FN, config, ['numFeatures', 'kind', 'seed', 'orthogonal', 'stabilize', 'projection']);
  const {kind = 'positive', seed = 0, orthogonal = true, stabilize = true} = config;
  if (config.numFeatures !== undefined) checkInteger(FN, 'numFeatures', config.numFeatures);
  checkOneOf(FN, 'kind', kind, FAVOR_KINDS);
  checkInteger(FN, 'seed', seed, Number.MIN_SAFE_INTEGER);
  checkBoolean(FN, 'orthogonal', orthogonal);
  checkBoolean(FN, 'stabilize', stabilize);
  let {numFeatures = null} = config;
  let projection: Checked['projection'] = null;
  if (config.projection !== undefined) {
    const shape = shapeOf(FN, 'projection', config.projection);
    check(
      shape.length === 2 && shape[0] > 0 && shape[1] > 0 && (numFeatures ?? shape[0]) === shape[0],
      FN,
      () =>
        `expected projection to be of shape [${numFeatures ?? 'numFeatures'}, r]; got ${showShape(shape)}.`,
    );
    numFeatures = shape[0];
    projection = {values: valuesOf(config.projection), r: shape[1]};
  }
  return {numFeatures, kind, seed, orthogonal, stabilize, projection};
}

/** A copy: the map holds numbers, never the caller's tensor. */
const valuesOf = (x: tf.TensorLike | tf.Tensor): Float32Array =>
  Float32Array.from(
    x instanceof tf.Tensor ? x.dataSync() : (tf.util.flatten(x as number[][], [], true) as number[]),
  );

/** Nested arrays, as JSON keeps them. */
const rowsOf = ({values, r}: {values: Float32Array; r: number}): number[][] =>
  Array.from({length: values.length / r}, (_, row) => Array.from(values.subarray(row * r, (row + 1) * r)));
