/** Turning what callers pass (`Tensor | TensorLike`) into checked float32 tensors. */
import * as tf from '@tensorflow/tfjs-core';
import {check, show, showShape} from './errors';

/** The shape of a tensor or of nested arrays, without making a tensor. Throws on what is neither, and on disposed tensors. */
export function shapeOf(fn: string, name: string, x: unknown): number[] {
  if (x instanceof tf.Tensor) {
    check(
      !x.isDisposed,
      fn,
      () => `expected ${name} to be a live tensor; got a disposed one of shape ${showShape(x.shape)}.`,
    );
    check(
      x.dtype === 'float32' || x.dtype === 'int32' || x.dtype === 'bool',
      fn,
      () => `expected ${name}.dtype to be float32, int32 or bool; got ${x.dtype}.`,
    );
    return x.shape;
  }
  check(
    typeof x === 'number' || typeof x === 'boolean' || Array.isArray(x) || ArrayBuffer.isView(x),
    fn,
    () => `expected ${name} to be a tensor or nested arrays of numbers; got ${show(x)}.`,
  );
  const shape: number[] = [];
  let level: unknown = x;
  while (Array.isArray(level) || (ArrayBuffer.isView(level) && !(level instanceof DataView))) {
    shape.push((level as ArrayLike<unknown>).length);
    level = (level as ArrayLike<unknown>)[0];
  }
  checkNested(fn, name, x, shape, 0);
  return shape;
}

/** Every branch of nested arrays must have the same lengths and end in numbers (or booleans). */
function checkNested(fn: string, name: string, x: unknown, shape: number[], depth: number): void {
  if (depth === shape.length) {
    check(
      typeof x === 'number' || typeof x === 'boolean',
      fn,
      () => `expected ${name} to hold numbers; got ${show(x)}.`,
    );
    return;
  }
  const list = x as ArrayLike<unknown>;
  check(
    (Array.isArray(x) || ArrayBuffer.isView(x)) && list.length === shape[depth],
    fn,
    () =>
      `expected ${name} to be a regular nested array of shape ${showShape(shape)}; got ${show(x)} inside it.`,
  );
  if (ArrayBuffer.isView(x)) {
    return;
  }
  for (let i = 0; i < list.length; i++) {
    checkNested(fn, name, list[i], shape, depth + 1);
  }
}

/**
 * A float32 tensor of the same values: the argument itself when it already is one, else a new tensor
 * (so call it inside a tidy). `shapeOf` must have accepted the argument.
 */
export function toFloat(x: tf.Tensor | tf.TensorLike): tf.Tensor {
  if (x instanceof tf.Tensor) {
    return x.dtype === 'float32' ? x : tf.cast(x, 'float32');
  }
  const made = tf.tensor(x);
  return made.dtype === 'float32' ? made : tf.cast(made, 'float32');
}
