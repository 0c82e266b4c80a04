/**
 * The gradient of segmented attention. Each segment is mapped and run again and differentiated where it stands, so that
 * training holds the inputs, their gradients, the state at each segment's start and the features of one segment.
 *
 *     causal        forward once for the states by keys alone; then, from the last segment to the first,
 *                   (dq, dk, dv, state's gradient at its start) from (dO, state's gradient at its end)
 *     not causal    each segment of queries adds to the final state's gradient, of which each segment of keys then gets
 *                   its part: the state is linear in what a segment adds
 */
import * as tf from '@tensorflow/tfjs-core';
import {addAll} from '../src/add_all';
import {sequencePiece} from '../src/sequence_piece';
import {gradientsInside, isHigherOrder} from '../src/tfjs';
import {
  advance,
  finalState,
  piecesOf,
  type Segment,
  type SegmentedCall,
  SegmentedLinearAttention,
  type State,
  segmentOf,
  wholeOf,
} from './segments';

/** Gradients of q, k, v, the state and the weights; state's is null where there is none. */
interface Part {
  q: tf.Tensor;
  k: tf.Tensor;
  v: tf.Tensor;
  state: State | null;
  weights: tf.Tensor[];
}

export const segmentsGradient: tf.GradConfig = {
  kernelName: SegmentedLinearAttention,
  saveAllInputs: true,
  gradFunc: (dys, saved, attrs) => {
    const {call, whole} = wholeOf(attrs, saved);
    const [dOutput, ...dState] = dys as [tf.Tensor, tf.Tensor, tf.Tensor];
    const gradients = tf.tidy(() => {
      const {q, k, v, state, weights} = isHigherOrder()
        ? differentiate(call, whole, [dOutput, ...dState])
        : call.causal
          ? causal(call, whole, dOutput, dState)
          : full(call, whole, dOutput, dState);
      const [, , , mask, s, z] = saved;
      return [q, k, v, tf.zerosLike(mask), ...(state ?? [tf.zerosLike(s), tf.zerosLike(z)]), ...weights];
    });
    return Object.fromEntries(gradients.map((gradient, i) => [i, () => gradient]));
  },
};

/** One segment's gradients, from those of its output, s and z; null where none arrives. */
function differentiate(
  call: SegmentedCall,
  segment: Segment,
  incoming: [output: tf.Tensor | null, s: tf.Tensor | null, z: tf.Tensor | null],
): Part {
  const {q, k, v, state, weights} = segment;
  const inputs = [q, k, v, ...(state ?? []), ...weights];
  const list = gradientsInside(() => {
    const results = call.run(segment);
    const terms = incoming.flatMap((dy, i) => (dy === null ? [] : [tf.sum(tf.mul(results[i], dy))]));
    return addAll(terms);
  }, inputs).map((gradient, i) => gradient ?? tf.zerosLike(inputs[i]));
  const [dq, dk, dv, ...rest] = list;
  return {
    q: dq,
    k: dk,
    v: dv,
    state: state === null ? null : (rest.slice(0, 2) as State),
    weights: rest.slice(state === null ? 0 : 2),
  };
}

/** a + b where both are; a and b are disposed, unless `a` is the caller's. */
function accumulate(sums: tf.Tensor[], more: tf.Tensor[]): tf.Tensor[] {
  if (sums.length === 0) {
    return more;
  }
  const next = more.map((x, i) => tf.add(sums[i], x));
  tf.dispose([sums, more]);
  return next;
}

function causal(call: SegmentedCall, whole: Segment, dOutput: tf.Tensor, dState: State): Part {
  const pieces = piecesOf(call, whole.q);
  const states: (State | null)[] = [whole.state];
  for (const piece of pieces.slice(0, -1)) {
    states.push(advance(call, whole, piece, states[states.length - 1]));
  }
  const parts: Part[] = [];
  let weights: tf.Tensor[] = [];
  let after = dState;
  for (let i = pieces.length - 1; i >= 0; i--) {
    const part = tidyPart(() =>
      differentiate(call, {...segmentOf(call, whole, pieces[i], 'both'), state: states[i]}, [
        sequencePiece(dOutput, call.axis, pieces[i]),
        ...after,
      ]),
    );
    weights = accumulate(weights, part.weights);
    if (i > 0) tf.dispose(states[i] as State);
    if (after !== dState) tf.dispose(after);
    after = part.state ?? after;
    parts.unshift(part);
  }
  return {...joined(call, parts, parts), state: parts[0].state, weights};
}

function full(call: SegmentedCall, whole: Segment, dOutput: tf.Tensor, dState: State): Part {
  const state = finalState(call, whole);
  let weights: tf.Tensor[] = [];
  let sums = dState.map((x) => tf.clone(x)) as State;
  const queries = piecesOf(call, whole.q).map((piece) => {
    const part = tidyPart(() =>
      differentiate(call, {...segmentOf(call, whole, piece, 'queries'), state}, [
        sequencePiece(dOutput, call.axis, piece),
        null,
        null,
      ]),
    );
    weights = accumulate(weights, part.weights);
    sums = accumulate(sums, part.state as State) as State;
    tf.dispose([part.k, part.v]);
    return part;
  });
  const keys = piecesOf(call, whole.k).map((piece) => {
    const part = tidyPart(() =>
      differentiate(call, {...segmentOf(call, whole, piece, 'keys'), state: null}, [null, ...sums]),
    );
    weights = accumulate(weights, part.weights);
    tf.dispose(part.q);
    return part;
  });
  return {...joined(call, queries, keys), state: whole.state === null ? null : sums, weights};
}

/** tidy for a Part. */
function tidyPart(f: () => Part): Part {
  const holder: {part?: Part} = {};
  tf.tidy(() => {
    const part = f();
    holder.part = part;
    return [part.q, part.k, part.v, ...(part.state ?? []), ...part.weights];
  });
  return holder.part as Part;
}

/** Gradients of the whole sequence. Each input's pieces go as they are joined, so that only one input is there twice. */
const joined = ({axis}: SegmentedCall, queries: Part[], keys: Part[]) => {
  const join = (pieces: tf.Tensor[]) => {
    const whole = tf.concat(pieces, axis);
    tf.dispose(pieces);
    return whole;
  };
  return {q: join(queries.map(({q}) => q)), k: join(keys.map(({k}) => k)), v: join(keys.map(({v}) => v))};
};
