/**
 * What a layer does along the time axis, which decides how a stream runs it.
 *
 * - time-wise: each position alone, so any piece of the sequence may be run as it is.
 * - positional: time-wise, but it must be told the positions (`callAt`).
 * - streaming: looks at earlier positions, through a state (layers/streaming.ts).
 *
 * Everything else cannot be streamed.
 */

import type * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {isStreamingLayer, type StreamingLayer} from '../layers/streaming';

type Layer = tfl.layers.Layer;
type Shape = (number | null)[];

/** A time-wise layer whose result depends on where in the sequence a token stands. */
export interface PositionalLayer {
  /** x [B,T,D]; the position of the first token, or of each of the B*T tokens, row by row. */
  callAt(x: tf.Tensor, positions: number | Int32Array): tf.Tensor;
}

export type LayerKind =
  | {kind: 'timewise'}
  | {kind: 'positional'; layer: PositionalLayer}
  | {kind: 'streaming'; layer: StreamingLayer};

/** tfjs's own layers that act on each position alone when the input is [B,T,..] with features after T. */
const TIMEWISE = new Set([
  'Activation',
  'AlphaDropout',
  'Dense',
  'Dropout',
  'ELU',
  'GaussianDropout',
  'GaussianNoise',
  'LeakyReLU',
  'ReLU',
  'SpatialDropout1D',
  'ThresholdedReLU',
  'TimeDistributed',
]);
/** Time-wise as long as the axis (or axes) they work along are features. */
const TIMEWISE_BY_AXIS = new Set(['BatchNormalization', 'Concatenate', 'LayerNormalization', 'Softmax']);
/** Combine inputs position by position. */
const MERGES = new Set(['Add', 'Average', 'Concatenate', 'Maximum', 'Minimum', 'Multiply']);

const MOVES = 'it moves positions, or joins them with features';
const NEIGHBOURS = 'it reads neighbouring positions, which have no state here';
const POOLS = 'it makes one of several positions';
/** Why stock layers, and this package's pooling, cannot run: nobody can give these classes `static timewise`. */
const REASONS: {[className: string]: string} = {
  Masking: 'it makes a mask from values; give prefill a mask instead',
  Bidirectional: 'it reads the sequence backwards too',
  Flatten: MOVES,
  Permute: MOVES,
  RepeatVector: MOVES,
  Reshape: MOVES,
  Conv1D: NEIGHBOURS,
  Conv2D: NEIGHBOURS,
  AveragePooling1D: POOLS,
  GlobalAveragePooling1D: POOLS,
  GlobalMaxPooling1D: POOLS,
  MaxPooling1D: POOLS,
  SequencePooling: POOLS,
};
const RECURRENT = new Set(['ConvLSTM2D', 'GRU', 'LSTM', 'RNN', 'SimpleRNN']);

/** How to stream one application of a layer, or the reason why that is not possible. */
export function kindOf(layer: Layer, inputs: tfl.SymbolicTensor[]): LayerKind | string {
  const className = layer.getClassName();
  const shapes = inputs.map(({shape}) => shape as Shape);
  if (isStreamingLayer(layer)) {
    const same = inputs.every((input) => input === inputs[0]);
    return same
      ? (layer.canStream() ?? {kind: 'streaming', layer})
      : 'it attends to other inputs than its own (cross attention, or a mask as an input)';
  }
  if ((layer.constructor as {timewise?: unknown}).timewise === true) {
    return 'callAt' in layer ? {kind: 'positional', layer: layer as PositionalLayer} : {kind: 'timewise'};
  }
  if (className === 'Embedding') {
    return {kind: 'timewise'};
  }
  const why = mixesTime(layer, className, shapes);
  return why ?? {kind: 'timewise'};
}

/** Why a stock layer cannot be run on pieces of the sequence; null when it can. */
function mixesTime(layer: Layer, className: string, shapes: Shape[]): string | null {
  if (RECURRENT.has(className)) {
    return 'recurrent layers are not supported';
  }
  const known = TIMEWISE.has(className) || TIMEWISE_BY_AXIS.has(className) || MERGES.has(className);
  if (!known && className !== 'PReLU') {
    return (
      REASONS[className] ??
      `${className} is not known to act on each position alone (if it does, give the class \`static timewise = true\`)`
    );
  }
  const rank = shapes[0].length;
  if (rank < 3) {
    return `its input of shape [${shapes[0].map(String).join(',')}] has no features beside the time axis`;
  }
  if (MERGES.has(className) && shapes.some((shape) => shape.length !== rank || shape[1] !== shapes[0][1])) {
    return 'its inputs differ in rank or length, so it would broadcast along time';
  }
  if (className === 'PReLU') {
    const alpha = layer.weights[0]?.shape[0];
    return alpha === 1 ? null : 'it has weights per position';
  }
  if (TIMEWISE_BY_AXIS.has(className)) {
    const {axis = -1} = layer.getConfig() as {axis?: number | number[]};
    const axes = (Array.isArray(axis) ? axis : [axis]).map((a) => (a < 0 ? a + rank : a));
    return axes.every((a) => a > 1)
      ? null
      : `it works along axis ${axes.join(', ')}, which is not a feature axis`;
  }
  return null;
}

/** What an embedding layer says about the ids it takes; null for other layers. */
export function embeddingOf(layer: Layer): {vocabSize: number; maskZero: boolean} | null {
  if (!['Embedding', 'TiedEmbedding'].includes(layer.getClassName())) {
    return null;
  }
  const {inputDim, maskZero} = layer.getConfig() as {inputDim: number; maskZero?: boolean};
  return {vocabSize: inputDim, maskZero: maskZero === true};
}
