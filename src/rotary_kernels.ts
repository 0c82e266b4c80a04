/**
 * The Rotary kernel: one pass over the values on cpu and wasm (rotary_cpu.ts, rotary_wasm.ts), stock ops elsewhere.
 * Turning is linear, and its gradient is turning back, so gradients of any order are this kernel again.
 */
import * as tf from '@tensorflow/tfjs-core';
import type {DataFormat} from './linear_attention/spec';
import {type Positions, type RotaryTables, rotaryTables} from './rotary_tables';
import {registerStopgap} from './stopgaps';
import {asTensor} from './tfjs';

/** 'half' pairs x_i with x_(i + r/2), 'interleaved' x_2i with x_(2i+1). */
export type RotaryPairing = 'half' | 'interleaved';

export interface RotateOptions {
  positions: Positions;
  base: number;
  pairing: RotaryPairing;
  dataFormat: DataFormat;
}

export interface RotaryAttrs extends RotateOptions {
  /** Turn the other way. */
  back: boolean;
}

export const Rotary = 'Rotary';

/** What a kernelFunc or gradFunc is handed, read as this kernel's. */
export const rotaryAttrsOf = (attrs: object | undefined): RotaryAttrs => attrs as RotaryAttrs;

/** Runs the kernel on x, [B,H,N,r] or [B,N,H,r]; where the backend has none of its own, the composed form. */
export function runRotary(x: tf.Tensor, attrs: RotaryAttrs): tf.Tensor {
  const backendName = tf.getBackend();
  if (tf.getKernel(Rotary, backendName) == null) {
    registerStopgap({kernelName: Rotary, backendName, kernelFunc: composedRotary});
  }
  if (tf.getGradient(Rotary) == null) {
    tf.registerGradient(gradient);
  }
  return tf.engine().runKernel(Rotary, {x}, {...attrs}) as tf.Tensor;
}

const gradient: tf.GradConfig = {
  kernelName: Rotary,
  gradFunc: (dy, _, attrs) => {
    const given = rotaryAttrsOf(attrs);
    return {x: () => runRotary(dy as tf.Tensor, {...given, back: !given.back})};
  },
};

export function tablesFor(shape: number[], {positions, base, dataFormat}: RotaryAttrs): RotaryTables {
  return rotaryTables(positions, shape[dataFormat === 'BHND' ? 2 : 1], shape[3], base);
}

/** Turns the rows of an array of that shape. */
export function turn(from: Float32Array, to: Float32Array, shape: number[], attrs: RotaryAttrs): void {
  const {cos, sin} = tablesFor(shape, attrs);
  const [B, second, third, r] = shape;
  const half = r / 2;
  const [step, apart] = attrs.pairing === 'half' ? [1, half] : [2, 1];
  const sign = attrs.back ? -1 : 1;
  const perRow = typeof attrs.positions === 'number' ? 0 : 1;
  const [N, lengthIsThird] = attrs.dataFormat === 'BHND' ? [third, true] : [second, false];
  let row = 0;
  for (let b = 0; b < B; b++) {
    for (let i = 0; i < second; i++) {
      for (let j = 0; j < third; j++) {
        const angles = (perRow * b * N + (lengthIsThird ? j : i)) * half;
        for (let pair = 0; pair < half; pair++) {
          const at = row + pair * step;
          const [c, s] = [cos[angles + pair], sign * sin[angles + pair]];
          const [u, v] = [from[at], from[at + apart]];
          to[at] = u * c - v * s;
          to[at + apart] = u * s + v * c;
        }
        row += r;
      }
    }
  }
}

/** With C = cos and S = (-sin, +sin) over the members of each pair: x C + swapped(x) S. */
export const composedRotary: tf.KernelFunc = ({inputs, attrs, backend}) => {
  const given = rotaryAttrsOf(attrs);
  return tf.tidy(() => {
    const x = asTensor(backend, inputs.x as tf.TensorInfo) as tf.Tensor4D;
    const [r, half] = [x.shape[3], x.shape[3] / 2];
    const {cos, sin} = tablesFor(x.shape, given);
    const rows = cos.length / half;
    const [step, apart] = given.pairing === 'half' ? [1, half] : [2, 1];
    const [wideCos, wideSin] = [new Float32Array(rows * r), new Float32Array(rows * r)];
    for (let i = 0; i < rows * half; i++) {
      const at = Math.floor(i / half) * r + (i % half) * step;
      wideCos[at] = wideCos[at + apart] = cos[i];
      wideSin[at + apart] = given.back ? -sin[i] : sin[i];
      wideSin[at] = -wideSin[at + apart];
    }
    const batches = typeof given.positions === 'number' ? 1 : x.shape[0];
    const shape = given.dataFormat === 'BHND' ? [batches, 1, -1, r] : [batches, -1, 1, r];
    const wide = (table: Float32Array) => tf.reshape(tf.tensor1d(table), shape);
    const pairs = tf.reshape(x, given.pairing === 'half' ? [-1, 2, half] : [-1, 2]);
    const swapped = tf.reshape(tf.reverse(pairs, 1), x.shape);
    return tf.add(tf.mul(x, wide(wideCos)), tf.mul(swapped, wide(wideSin)));
  });
};
