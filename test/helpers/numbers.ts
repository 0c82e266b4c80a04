/** Reading tensors in tests. */
import * as tf from '@tensorflow/tfjs-core';

/** The values of a tensor, which is disposed. */
export function take(tensor: tf.Tensor): number[] {
  const values = Array.from(tensor.dataSync());
  tensor.dispose();
  return values;
}

/** The values of what f returns; everything f makes is disposed. */
export function valuesOf(f: () => tf.Tensor): number[] {
  return Array.from(tf.tidy(() => f().dataSync()));
}

/** The message of the error that f throws; fails when it throws none. */
export function messageOf(f: () => unknown): string {
  try {
    f();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('expected an error, got none');
}
