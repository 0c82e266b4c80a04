/**
 * What generation needs from a layer that looks back in time: run a few new tokens against a state. A state is a
 * value: `streamCall` returns a new one, and the one it was given keeps its value and stays the caller's to dispose.
 * Layers that treat each token alone need none of this; own classes of that kind say `static timewise = true`.
 */
import type * as tf from '@tensorflow/tfjs-core';
import {check, checkInteger, show, showShape} from '../src/errors';

/** All that a layer remembers of the tokens so far: tensors, and numbers such as a length. */
export interface StreamState {
  [name: string]: tf.Tensor | number;
}

/** Where the tokens of a `streamCall` stand. */
export interface StreamContext {
  /** Position of the first token, or of every token, [B*T] row by row. Used by rotary embedding. */
  positions: number | Int32Array;
  /** [B,T]; keeps where != 0. A masked token leaves its row of the state as it was. */
  mask?: tf.Tensor;
}

/** What a `streamCall` returns; its tensors are the caller's. */
export interface StreamResult {
  /** [B,T,outputDim] */
  output: tf.Tensor;
  state: StreamState;
}

/** A layer that looks back in time and can run token by token. */
export interface StreamingLayer {
  /** Null when the layer can run token by token, else the reason why not. */
  canStream(): string | null;
  /** The state before the first token. */
  streamState(batchSize: number): StreamState;
  /** The next T >= 1 tokens, x [B,T,D]. Running a sequence in any pieces gives what `call` gives on the whole. */
  streamCall(x: tf.Tensor, state: StreamState, context: StreamContext): StreamResult;
}

/**
 * True for layers that implement the protocol, from this package or not: `generation.stream` runs them through a state.
 *
 * ```js
 * console.log(tfla.layers.isStreamingLayer(tfla.layers.linearAttention({numHeads: 2, keyDim: 4}))); // true
 * console.log(tfla.layers.isStreamingLayer(tf.layers.dense({units: 4}))); // false
 * ```
 */
export function isStreamingLayer(layer: object): layer is StreamingLayer {
  const {canStream, streamState, streamCall} = layer as Partial<StreamingLayer>;
  return [canStream, streamState, streamCall].every((method) => typeof method === 'function');
}

/** Checks x [B,T,D], positions and mask of a streamCall. */
export function checkStreamCall(fn: string, x: tf.Tensor, inputDim: number, context: StreamContext): void {
  const shape = x?.shape;
  check(
    Array.isArray(shape) && shape.length === 3 && shape[1] > 0 && shape[2] === inputDim,
    fn,
    () =>
      `expected x to have shape [batch, tokens, ${inputDim}] with at least one token; got ${shape === undefined ? show(x) : showShape(shape)}.`,
  );
  const {positions, mask} = context ?? {};
  if (typeof positions === 'number') {
    checkInteger(fn, 'positions', positions, 0);
  } else {
    check(
      ArrayBuffer.isView(positions) && positions.length === shape[0] * shape[1],
      fn,
      () =>
        `expected positions to be a number or an Int32Array of batch * tokens (${shape[0] * shape[1]}) values; got ${positions === undefined ? 'undefined' : `${positions.length} values`}.`,
    );
  }
  if (mask !== undefined) {
    check(
      mask.shape.length === 2 && mask.shape[0] === shape[0] && mask.shape[1] === shape[1],
      fn,
      () =>
        `expected mask to have shape [batch, tokens] ${showShape(shape.slice(0, 2))}; got ${showShape(mask.shape)}.`,
    );
  }
}

/** Checks that state[name] is a live tensor of this shape; null is any size. */
export function checkStateTensor(
  fn: string,
  state: StreamState,
  name: string,
  shape: (number | null)[],
): tf.Tensor {
  const tensor = state?.[name];
  check(
    tensor !== undefined && typeof tensor === 'object' && Array.isArray(tensor.shape),
    fn,
    () => `expected state.${name} to be a tensor from streamState or streamCall; got ${show(tensor)}.`,
  );
  check(!tensor.isDisposed, fn, () => `expected state.${name} to be a live tensor; got a disposed one.`);
  check(
    tensor.shape.length === shape.length && shape.every((n, i) => n === null || n === tensor.shape[i]),
    fn,
    () => `expected state.${name} to have shape ${showShape(shape)}; got ${showShape(tensor.shape)}.`,
  );
  return tensor;
}
