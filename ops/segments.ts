/** Parts of a sequence, and what it takes to run linear attention on one part after another. */
import * as tf from '@tensorflow/tfjs-core';
import {sequencePiece} from '../src/sequence_piece';

export type State = [s: tf.Tensor, z: tf.Tensor];

/** The tensors of a call, of the whole sequence or of a part of it. q, k, v are in the call's layout. */
export interface Segment {
  q: tf.Tensor;
  k: tf.Tensor;
  v: tf.Tensor;
  /** [B,Nk] */
  mask: tf.Tensor | null;
  state: State | null;
  /** The map's, in the order of `weightNames`. */
  weights: tf.Tensor[];
  /** Index of its first token in the whole sequence. */
  from: number;
}

/** How a call runs: everything but the tensors. */
export interface SegmentedCall {
  causal: boolean;
  /** Axis of q, k and v along the sequence. */
  axis: number;
  /** Tokens per segment. */
  length: number;
  hasMask: boolean;
  hasState: boolean;
  /**
   * Maps a segment and runs the kernel on it, in ops that can be differentiated: output, s, z. Causal where the
   * segment's q and k are of one length; either may be empty.
   */
  run(segment: Segment): tf.Tensor[];
}

/** [first token, tokens] */
export type Piece = [from: number, size: number];

export const SegmentedLinearAttention = 'SegmentedLinearAttention';

/** What a kernel or gradient function is handed, read as the whole call. */
export function wholeOf(
  attrs: object | undefined,
  inputs: tf.Tensor[],
): {call: SegmentedCall; whole: Segment} {
  const {call, from} = attrs as {call: SegmentedCall; from: number};
  const [q, k, v, mask, s, z, ...weights] = inputs;
  return {
    call,
    whole: {
      ...{q, k, v, weights, from},
      mask: call.hasMask ? mask : null,
      state: call.hasState ? [s, z] : null,
    },
  };
}

/** The pieces of x's sequence. */
export function piecesOf({axis, length}: SegmentedCall, x: tf.Tensor): Piece[] {
  const N = x.shape[axis];
  return Array.from({length: Math.ceil(N / length)}, (_, i) => [
    i * length,
    Math.min(length, N - i * length),
  ]);
}

/** A piece of the sequence, with one side empty where only the other takes part. Its state is the whole call's. */
export function segmentOf(
  {axis}: SegmentedCall,
  whole: Segment,
  piece: Piece,
  sides: 'both' | 'queries' | 'keys',
): Segment {
  const none: Piece = [0, 0];
  const [queries, keys] = [sides === 'keys' ? none : piece, sides === 'queries' ? none : piece];
  return {
    ...whole,
    q: sequencePiece(whole.q, axis, queries),
    k: sequencePiece(whole.k, axis, keys),
    v: sequencePiece(whole.v, axis, keys),
    mask: whole.mask === null ? null : sequencePiece(whole.mask, 1, keys),
    from: whole.from + piece[0],
  };
}

/** The state after a piece of keys. */
export const advance = (call: SegmentedCall, whole: Segment, piece: Piece, state: State | null): State =>
  tf.tidy(() => call.run({...segmentOf(call, whole, piece, 'keys'), state}).slice(1)) as State;

/** The state after all keys, in tensors that are not the call's own. */
export function finalState(call: SegmentedCall, whole: Segment): State {
  let state = whole.state;
  for (const piece of piecesOf(call, whole.k)) {
    const next = advance(call, whole, piece, state);
    if (state !== null && state !== whole.state) tf.dispose(state);
    state = next;
  }
  return state as State;
}
