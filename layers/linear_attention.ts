/** Linear attention as a Keras-style layer. */
import * as tf from '@tensorflow/tfjs-core';
import type {LayerVariable} from '@tensorflow/tfjs-layers';
import {
  type LinearAttentionState,
  linearAttention as linearAttentionOp,
  linearAttentionStep,
  zeroState,
} from '../ops';
import {type FeatureMapLike, featureMapFromConfig, resolveFeatureMap} from '../ops/feature_maps';
import {applyFeatureMap} from '../ops/feature_maps/apply';
import {limited} from '../ops/feature_maps/limited';
import type {FeatureMap} from '../ops/feature_maps/types';
import {segmentLength} from '../ops/segmented_attention';
import {check, checkBoolean, checkInteger, checkNumber} from '../src/errors';
import {type AttentionArgs, argsFromConfig} from './args';
import {AttentionLayer, type CallContext, type Heads} from './attention_base';
import {FixedValues, type Initializer, resolve} from './identifiers';
import {attendNumerator, type Side, selectKeys, turnedMap} from './numerator';
import {checkStateTensor, type StreamContext, type StreamState} from './streaming';

const FN = 'LinearAttention';
const EXTRA = ['featureMap', 'normalize', 'epsilon'] as const;

/** A map as a saved configuration holds it. */
interface FeatureMapConfig {
  name: string;
  config: {[key: string]: unknown};
}

/** Arguments of LinearAttention. */
export interface LinearAttentionArgs extends AttentionArgs {
  /** The kernel's feature map, by name or as an object. Default 'elu'. */
  featureMap?: FeatureMapLike | FeatureMapConfig;
  /** Divide by the sum of the weights. Default true. */
  normalize?: boolean;
  /** Added to that sum. Default: the map's own, else 1e-6. */
  epsilon?: number | null;
}

/**
 * Multi-head attention whose cost grows linearly with the length: `phi(q_i).S / (phi(q_i).z + epsilon)` with
 * `S = sum_j phi(k_j) v_j^T` and `z = sum_j phi(k_j)`, over j <= i when causal.
 *
 * Weights, in order, as in Keras's MultiHeadAttention: query_kernel [D,H,keyDim], query_bias [H,keyDim], key_kernel,
 * key_bias, value_kernel [D,H,valueDim], value_bias, output_kernel [H,valueDim,outputDim], output_bias [outputDim],
 * then the feature map's own.
 *
 * Calls: `x` | `[query, value]` | `[query, value, key]`, each [B,N,features], where the three may differ in features,
 * and optionally a key mask [B,Nk] as the last input. Output [B,Nq,outputDim]. Any batch and length at each call.
 *
 * Masks (nonzero keeps): with one input, `apply(x, {mask})`, or what tfjs hands on from Embedding (maskZero) or
 * Masking. With several, `{mask: [queryMask, valueMask, keyMask]}`; value's and key's are ANDed. In a functional model
 * tfjs hands a layer the first input's mask only, so the key mask of cross attention is a further input; so is one that
 * comes from outside a nested model. Masks of queries change no values and are passed on.
 *
 * rotary 'input' turns q and k before the map; with 'exp' what comes out is limited to 30, where exp would soon overflow.
 * 'numerator' (RoFormer, section 3.3) turns the features in the numerator
 * and leaves the denominator as it is.
 *
 * ```js
 * const model = tf.sequential({layers: [
 *   tf.layers.dense({units: 32, inputShape: [null, 8]}),
 *   tfla.layers.linearAttention({numHeads: 4, keyDim: 16, causal: true}),
 * ]});
 * model.predict(tf.randomNormal([2, 100, 8])).print(); // [2,100,32]
 * ```
 *
 * Source: Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236, section 3.2.
 */
export class LinearAttention extends AttentionLayer {
  /** @nocollapse */
  static className = FN;
  readonly featureMap: FeatureMap;
  readonly normalize: boolean;
  /** Null: the map's default. */
  readonly epsilon: number | null;
  private mapWeights: {[name: string]: LayerVariable} = {};

  constructor(args: LinearAttentionArgs) {
    super(FN, args, EXTRA, ['input', 'numerator']);
    const {rotary, keyDim, causal} = this.options;
    this.featureMap = toFeatureMap(args.featureMap ?? 'elu');
    this.normalize = args.normalize ?? true;
    checkBoolean(FN, 'normalize', this.normalize);
    this.epsilon = args.epsilon ?? null;
    if (this.epsilon !== null) checkNumber(FN, 'epsilon', this.epsilon, {min: 0});
    const name = this.featureMap.name;
    check(
      !causal || this.featureMap.causal !== false,
      FN,
      () => `feature map '${name}' cannot be used causally: its keys depend on the whole sequence.`,
    );
    const dim = this.featureMap.dim(keyDim);
    check(
      rotary !== 'numerator' || dim % 2 === 0,
      FN,
      () =>
        `expected an even number of features with rotary 'numerator'; got ${dim} (${name} of keyDim ${keyDim}).`,
    );
  }

  protected override buildMore(): void {
    const {keyDim, numHeads} = this.options;
    for (const {name, shape, initializer, trainable} of this.featureMap.weights?.(keyDim, numHeads) ?? []) {
      const initial =
        typeof initializer === 'string'
          ? resolve<Initializer>(
              this.fn,
              `initializer of the map's weight '${name}'`,
              'initializer',
              initializer,
            )!
          : new FixedValues(initializer);
      this.mapWeights[name] = this.addWeight(name, shape, 'float32', initial, undefined, trainable);
    }
  }

  /** The feature map's weights by name, live; undefined when it has none. Not to be disposed. */
  featureMapWeights(): tf.NamedTensorMap | undefined {
    const entries = Object.entries(this.mapWeights).map(([name, weight]) => [name, weight.read()]);
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  }

  protected override attend(heads: Heads, {mask, training}: CallContext): tf.Tensor4D {
    const {causal, rotary} = this.options;
    const more = {...this.common(), causal, ...(mask && {mask})};
    let output: tf.Tensor4D;
    if (rotary === 'numerator') {
      output = attendNumerator(...this.sides(heads, mask, 0), heads.v, more).output;
    } else {
      const {q, k, v} = this.rotateInput(heads, 0);
      output = linearAttentionOp(q, k, v, {...more, dataFormat: 'BNHD'}) as tf.Tensor4D;
    }
    return this.drop(output, training);
  }

  /**
   * Turning makes large positive numbers of the large negative ones that exp drives features towards 0 with: beyond the
   * positions of its training a model would overflow.
   */
  protected override rotateInput(heads: Heads, positions: number | Int32Array): Heads {
    const turned = super.rotateInput(heads, positions);
    return turned === heads || this.featureMap.pointwise !== 'exp'
      ? turned
      : {...turned, q: limited(turned.q), k: limited(turned.k)};
  }

  /** What every kernel call of this layer is given. */
  private common() {
    const featureMapWeights = this.featureMapWeights();
    return {
      featureMap: this.featureMap,
      normalize: this.normalize,
      eps: this.epsilon ?? this.featureMap.eps ?? 1e-6,
      ...(featureMapWeights && {featureMapWeights}),
    };
  }

  /** What turns in the numerator, and what does not. */
  private sides(
    {q, k}: Heads,
    mask: tf.Tensor | undefined,
    positions: number | Int32Array,
  ): [turned: Side, plain: Side] {
    const {featureMap: map, fn} = this;
    const weights = this.featureMapWeights();
    const turn = (x: tf.Tensor4D, at: number | Int32Array) => this.rotated(x, at);
    const [, Nq, , r] = q.shape;
    if (segmentLength(map, {r, d: this.options.valueDim, Nq, Nk: k.shape[1]}) !== null) {
      const more = {...placeOf(positions), ...(weights && {featureMapWeights: weights})};
      const [queries, keys] = [q, k];
      return [
        {queries, keys, options: {featureMap: turnedMap(map, turn), ...more}},
        {queries, keys, options: {featureMap: map, ...more}},
      ];
    }
    const phi = (side: 'queries' | 'keys', x: tf.Tensor4D) =>
      applyFeatureMap(fn, map, side, x, {
        ...{sequenceAxis: 1, headAxis: 2, mask, weights, normalized: this.normalize},
        ...placeOf(positions),
      }) as tf.Tensor4D;
    const [queries, keys] = [phi('queries', q), phi('keys', mask === undefined ? k : selectKeys(mask, k))];
    const options = {featureMap: 'identity'};
    return [
      {queries: turn(queries, positions), keys: turn(keys, positions), options},
      {queries, keys, options},
    ];
  }

  /**
   * Draws the feature map's random weights anew, in place: FAVOR+ directions, between training steps. The same seed
   * gives the same directions. States and streams from before do not fit the new ones.
   *
   * @throws Error when the layer has no weights yet, or the map has no random ones.
   */
  redraw(seed: number): void {
    const fn = `${this.fn}.redraw`;
    checkInteger(fn, 'seed', seed, Number.MIN_SAFE_INTEGER);
    const {keyDim, numHeads} = this.options;
    const {featureMap: map} = this;
    check(map.redraw !== undefined, fn, () => `feature map '${map.name}' has nothing random to draw again.`);
    check(this.built, fn, () => 'the layer has no weights yet; apply it to an input first.');
    for (const [name, values] of Object.entries(map.redraw(keyDim, numHeads, seed))) {
      const weight = this.mapWeights[name];
      const drawn = tf.tensor(values, weight.read().shape);
      weight.write(drawn);
      drawn.dispose();
    }
  }

  /** s [B,H,r',valueDim] and z [B,H,r'] of zeros. */
  streamState(batchSize: number): StreamState {
    this.checkCanStream();
    checkInteger(`${this.fn}.streamState`, 'batchSize', batchSize);
    const {numHeads, keyDim, valueDim} = this.options;
    return {...zeroState({batchSize, numHeads, keyDim: this.featureMap.dim(keyDim), valueDim})};
  }

  protected override attendStream(heads: Heads, state: StreamState, {positions, mask}: StreamContext) {
    const fn = `${this.fn}.streamCall`;
    const {numHeads, keyDim, valueDim, rotary} = this.options;
    const [batch, tokens] = heads.q.shape;
    const features = this.featureMap.dim(keyDim);
    const initialState: LinearAttentionState = {
      s: checkStateTensor(fn, state, 's', [batch, numHeads, features, valueDim]) as tf.Tensor4D,
      z: checkStateTensor(fn, state, 'z', [batch, numHeads, features]) as tf.Tensor3D,
    };
    const more = {...this.common(), ...(mask && {mask})};
    if (rotary === 'numerator') {
      const [turned, plain] = this.sides(heads, mask, positions);
      const result = attendNumerator(turned, plain, heads.v, {...more, causal: true, initialState});
      return {output: result.output, state: {...result.state}};
    }
    const {q, k, v} = this.rotateInput(heads, positions);
    if (tokens > 1) {
      const options = {
        ...more,
        causal: true,
        dataFormat: 'BNHD',
        initialState,
        ...placeOf(positions),
        returnState: true,
      } as const;
      const result = linearAttentionOp(q, k, v, options);
      return {output: result.output as tf.Tensor4D, state: {...result.state}};
    }
    const one = (x: tf.Tensor4D) => tf.reshape(x, [batch, numHeads, x.shape[3]]);
    const result = linearAttentionStep(one(q), one(k), one(v), initialState, {
      ...more,
      ...placeOf(positions),
      ...(mask && {mask: tf.reshape(mask, [batch])}),
    });
    return {
      output: tf.reshape(result.output, [batch, 1, numHeads, valueDim]) as tf.Tensor4D,
      state: {...result.state},
    };
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {
      ...super.getConfig(),
      featureMap: {name: this.featureMap.name, config: jsonSafe(this.featureMap.getConfig())},
      normalize: this.normalize,
      epsilon: this.epsilon,
    };
  }

  /** @nocollapse */
  static override fromConfig<T extends tf.serialization.Serializable>(
    cls: tf.serialization.SerializableConstructor<T>,
    config: tf.serialization.ConfigDict,
  ): T {
    return new cls(argsFromConfig(config, EXTRA));
  }
}
tf.serialization.registerClass(LinearAttention);

/** Where a stream stands, as the ops take it. */
const placeOf = (positions: number | Int32Array): {offset?: number; positions?: Int32Array} =>
  typeof positions === 'number' ? {offset: positions} : {positions};

function toFeatureMap(given: LinearAttentionArgs['featureMap'] & {}): FeatureMap {
  return typeof given === 'object' && given !== null && 'config' in given && !('queries' in given)
    ? featureMapFromConfig(given.name, given.config, FN)
    : resolveFeatureMap(given as FeatureMapLike, FN);
}

/** Typed arrays as lists: JSON would write them as objects. */
function jsonSafe(config: {[key: string]: unknown}): tf.serialization.ConfigDict {
  const plain = Object.entries(config).map(([key, value]) => [
    key,
    ArrayBuffer.isView(value) ? Array.from(value as Float32Array) : value,
  ]);
  return Object.fromEntries(plain);
}

/**
 * A LinearAttention layer.
 *
 * ```js
 * const layer = tfla.layers.linearAttention({numHeads: 4, keyDim: 16, causal: true});
 * layer.apply(tf.randomNormal([2, 10, 64])).print(); // [2,10,64]
 * ```
 *
 * @throws Error for unknown arguments and values out of range; those of Keras come with a hint.
 */
export const linearAttention = (args: LinearAttentionArgs): LinearAttention => new LinearAttention(args);
