/** Running a plan on the next tokens. */
import * as tf from '@tensorflow/tfjs-core';
import type {StreamState} from '../layers/streaming';
import type {Plan, Step} from './plan';

export interface Batch {
  /** ids [B,T] or vectors [B,T,D]. */
  x: tf.Tensor;
  /** Position of the first token, or of every token, [B*T]. */
  positions: number | Int32Array;
  /** [B,T], 0 where a token is padding. */
  mask?: tf.Tensor;
  /** Per row, the index of its last token that is not padding; a number when it is the same for all. */
  last: number | Int32Array;
}

/**
 * The model's output at the last position of each row, [B,V], and the states afterwards. The given states keep their
 * values. Layers that come after the last one with a state see only that position. To be called inside a tidy.
 */
export function runPlan(
  plan: Plan,
  batch: Batch,
  states: readonly StreamState[],
): {logits: tf.Tensor2D; states: StreamState[]} {
  const [rows, length] = batch.x.shape as number[];
  const slots: tf.Tensor[] = new Array(plan.slots);
  const next = [...states];
  slots[plan.input] = batch.x;
  for (const step of plan.steps.slice(0, plan.tail)) {
    runStep(step, slots, batch.positions, next, batch.mask);
  }
  let positions = batch.positions;
  if (length > 1) {
    for (const slot of plan.carried) {
      slots[slot] = lastOf(slots[slot], batch.last);
    }
    positions = lastPositions(batch.positions, batch.last, length);
  }
  for (const step of plan.steps.slice(plan.tail)) {
    runStep(step, slots, positions, next, undefined);
  }
  const output = slots[plan.output];
  return {logits: tf.reshape(output, [rows, output.shape[2] as number]), states: next};
}

function runStep(
  {layer, kind, inputs, outputs, state, release}: Step,
  slots: tf.Tensor[],
  positions: number | Int32Array,
  states: StreamState[],
  mask: tf.Tensor | undefined,
): void {
  const x = inputs.length === 1 ? slots[inputs[0]] : inputs.map((slot) => slots[slot]);
  let made: tf.Tensor | tf.Tensor[];
  switch (kind.kind) {
    case 'streaming': {
      const result = kind.layer.streamCall(slots[inputs[0]], states[state], {positions, mask});
      states[state] = result.state;
      made = result.output;
      break;
    }
    case 'positional':
      made = kind.layer.callAt(slots[inputs[0]], positions);
      break;
    case 'timewise':
      made = layer.call(x, {training: false});
  }
  const list = Array.isArray(made) ? made : [made];
  outputs.forEach((slot, i) => {
    // A layer may hand on its input, which is about to be released.
    slots[slot] = inputs.some((input) => slots[input] === list[i]) ? tf.clone(list[i]) : list[i];
  });
  for (const slot of release) {
    slots[slot].dispose();
  }
}

/** [B,T,..] at one index per row: [B,1,..]. */
function lastOf(x: tf.Tensor, last: number | Int32Array): tf.Tensor {
  const [rows, length, ...rest] = x.shape;
  if (typeof last === 'number') {
    return tf.slice(x, [0, last, ...rest.map(() => 0)], [rows, 1, ...rest]);
  }
  const flat = tf.reshape(x, [rows * length, ...rest]);
  const picked = tf.gather(
    flat,
    tf.tensor1d(
      last.map((t, row) => row * length + t),
      'int32',
    ),
  );
  return tf.reshape(picked, [rows, 1, ...rest]);
}

function lastPositions(
  positions: number | Int32Array,
  last: number | Int32Array,
  length: number,
): number | Int32Array {
  if (typeof positions === 'number') {
    return typeof last === 'number' ? positions + last : last.map((t) => positions + t);
  }
  const rows = positions.length / length;
  return Int32Array.from(
    {length: rows},
    (_, row) => positions[row * length + (typeof last === 'number' ? last : last[row])],
  );
}
