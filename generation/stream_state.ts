/** The states of a stream's layers: what a stream owns. */
import * as tf from '@tensorflow/tfjs-core';
import type {StreamState} from '../layers/streaming';

export function tensorsOf(states: readonly StreamState[]): tf.Tensor[] {
  return states.flatMap((state) => Object.values(state)).filter((value) => value instanceof tf.Tensor);
}

/** Keeps the tensors when tidies end. */
export function keepStates(states: readonly StreamState[]): void {
  tensorsOf(states).map((tensor) => tf.keep(tensor));
}

/** Disposes the tensors, but for those that `except` holds as well. */
export function disposeStates(states: readonly StreamState[], except: readonly StreamState[] = []): void {
  const spared = new Set(tensorsOf(except));
  for (const tensor of tensorsOf(states)) {
    if (!spared.has(tensor)) {
      tensor.dispose();
    }
  }
}

/** The same values, in tensors of their own (which share memory until one is disposed). */
export function cloneStates(states: readonly StreamState[]): StreamState[] {
  return states.map((state) =>
    Object.fromEntries(
      Object.entries(state).map(([name, value]) => [
        name,
        value instanceof tf.Tensor ? tf.clone(value) : value,
      ]),
    ),
  );
}

export function bytesOf(states: readonly StreamState[]): number {
  return tensorsOf(states).reduce((sum, {size, dtype}) => sum + size * tf.util.bytesPerElement(dtype), 0);
}
