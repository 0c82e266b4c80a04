/** What a feature map is. One object may serve many layers: it holds no tensors and no state. */
import type * as tf from '@tensorflow/tfjs-core';
import type {PointwiseMap} from '../../src/pointwise';

/** Where in the sequence the rows of `x` stand, and what else a map may need. All fields are optional. */
export interface FeatureMapContext {
  /** Axis of x that runs along the sequence. Default 2 (BHND). */
  sequenceAxis?: number;
  /** Axis of x that runs over heads. Default 1 (BHND). */
  headAxis?: number;
  /** Position of the first row. Default 0. */
  offset?: number;
  /** Position of every row of x, [B*N], batch row by batch row, where rows differ; then `offset` is not used. */
  positions?: Int32Array;
  /** [B,N]; 1 keeps. */
  mask?: tf.Tensor;
  /** The map's weights, by name. */
  weights?: tf.NamedTensorMap;
  /** False: the output is not divided by the denominator, so a factor of a query's features shows. Default true. */
  normalized?: boolean;
  /** Default false. */
  training?: boolean;
}

/** A weight that a layer creates for a map with its own addWeight. */
export interface FeatureMapWeight {
  /** By which `ctx.weights` has it. */
  name: string;
  shape: number[];
  /** Values, or the name of a Keras initializer. Typed arrays, never tensors. */
  initializer: string | Float32Array;
  trainable: boolean;
}

/** phi: [.., r] -> [.., r'], for queries and for keys. */
export interface FeatureMap {
  /** Under which it is registered and saved. */
  readonly name: string;
  /** The map is this pointwise function: kernels fuse it and `queries`/`keys` are not called. */
  readonly pointwise?: PointwiseMap;
  /**
   * False: the map looks at the whole sequence and cannot be used causally. Default true: a row's features depend on
   * that row and its position alone, so the sequence may be mapped piece by piece.
   */
  readonly causal?: boolean;
  /** Added to the denominator unless the caller says otherwise. Default 1e-6. */
  readonly eps?: number;
  /** r' for a given r. */
  dim(inputDim: number): number;
  /** The weights that a layer makes for it. Default: none. */
  weights?(inputDim: number, numHeads: number): FeatureMapWeight[];
  /** Features of queries [.., r]: [.., r']. */
  queries(x: tf.Tensor, ctx?: FeatureMapContext): tf.Tensor;
  /** The same for keys. */
  keys(x: tf.Tensor, ctx?: FeatureMapContext): tf.Tensor;
  /** New values for the weights that are random constants, by name. A layer's `redraw` writes them. */
  redraw?(inputDim: number, numHeads: number, seed: number): {[name: string]: Float32Array};
  /** What its factory takes to make it again; JSON, or typed arrays. */
  getConfig(): {[key: string]: unknown};
}
