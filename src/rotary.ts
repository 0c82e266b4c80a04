/**
 * Rotary position embedding: the feature pairs of a row at position p are turned by the angles p base^(-2i/r),
 * i = 0..r/2-1.
 */
import * as tf from '@tensorflow/tfjs-core';
import {type RotateOptions, runRotary} from './rotary_kernels';

export type {RotaryPairing, RotateOptions} from './rotary_kernels';
export type {Positions} from './rotary_tables';

/** Turns x, [B,H,N,r] or [B,N,H,r], float32, r even. Differentiable to any order. */
export function rotate(x: tf.Tensor4D, options: RotateOptions): tf.Tensor4D {
  return (x.size === 0 ? tf.clone(x) : runRotary(x, {...options, back: false})) as tf.Tensor4D;
}
