/**
 * Attention with a map of many features, segment by segment: the features of a whole sequence are never there at once.
 * A segment's queries and keys are mapped and run from the state that the segments before have left. When not causal,
 * segments of keys are summed into the state first, and segments of queries then read it.
 */
import * as tf from '@tensorflow/tfjs-core';
import {openTapes} from '../src/tfjs';
import type {FeatureMap} from './feature_maps/types';
import {
  finalState,
  piecesOf,
  type Segment,
  type SegmentedCall,
  SegmentedLinearAttention,
  type State,
  segmentOf,
  wholeOf,
} from './segments';
import {segmentsGradient} from './segments_gradient';

/** Up to so many features a number all are mapped at once: the kernel then runs once, and backward maps nothing again. */
const FEW = 4;

/**
 * Tokens per segment, or null where the features of the whole sequence are not many more than its inputs. Segments are
 * long enough for the states that backward keeps, r'(d + 1) numbers a segment, to be at most 4 (r + d) numbers a token.
 */
export function segmentLength(
  map: FeatureMap,
  {r, d, Nq, Nk}: {r: number; d: number; Nq: number; Nk: number},
): number | null {
  if (map.pointwise !== undefined || map.causal === false || map.dim(r) <= FEW * r || Nq * Nk === 0) {
    return null;
  }
  const length = Math.max(128, 32 * Math.ceil((map.dim(r) * (d + 1)) / (4 * (r + d)) / 32));
  return Math.max(Nq, Nk) > length ? length : null;
}

/** Output, s and z of a call, for a `length` that `segmentLength` gave. To be called inside a tidy. */
export function runSegments(call: SegmentedCall, whole: Segment): tf.Tensor[] {
  // Under nested gradients the whole sequence is mapped at once, in ops that tfjs can differentiate again.
  if (openTapes() > 1) {
    return call.run(whole);
  }
  const backendName = tf.getBackend();
  if (tf.getKernel(SegmentedLinearAttention, backendName) == null) {
    tf.registerKernel({kernelName: SegmentedLinearAttention, backendName, kernelFunc: forward});
  }
  if (tf.getGradient(SegmentedLinearAttention) == null) {
    tf.registerGradient(segmentsGradient);
  }
  // Always all inputs, absent ones as placeholders; a list, because tfjs saves all inputs only of a list.
  const none = tf.zeros([1]);
  const {q, k, v, mask, state, weights, from} = whole;
  const inputs = [q, k, v, mask ?? none, ...(state ?? [none, none]), ...weights];
  return tf
    .engine()
    .runKernel(SegmentedLinearAttention, inputs as never, {call, from} as never) as tf.Tensor[];
}

const forward: tf.KernelFunc = ({inputs, attrs}) =>
  tf.tidy(() => {
    const {call, whole} = wholeOf(attrs, Object.values(inputs) as tf.Tensor[]);
    const {causal, axis} = call;
    let state = causal ? whole.state : finalState(call, whole);
    const outputs: tf.Tensor[] = [];
    for (const piece of piecesOf(call, whole.q)) {
      const before = state;
      const [output, ...after] = tf.tidy(() =>
        call.run({...segmentOf(call, whole, piece, causal ? 'both' : 'queries'), state: before}),
      );
      outputs.push(output);
      if (!causal) {
        tf.dispose(after);
        continue;
      }
      if (before !== null && before !== whole.state) tf.dispose(before);
      state = after as State;
    }
    return [tf.concat(outputs, axis), ...(state as State)];
  });
