/**
 * Rotary position embedding: the feature pairs of a row at position p are turned by the angles p base^(-2i/r),
 * i = 0..r/2-1. Angles, cosines and sines are computed in double precision, so they stay right at large positions.
 */
import * as tf from '@tensorflow/tfjs-core';
import type {DataFormat} from './linear_attention/spec';
import {composedRotate} from './rotary/composed';
import {type RotaryPairing, Rotate} from './rotary/spec';

export type {RotaryPairing} from './rotary/spec';

/** Position of the first token, or one position per row and token, [B,N] row-major. */
export type Positions = number | ArrayLike<number>;

export interface RotateOptions {
  positions: Positions;
  base: number;
  pairing: RotaryPairing;
  dataFormat: DataFormat;
}

/** Turns x, [B,H,N,r] or [B,N,H,r], r even. Differentiable to any order. */
export function rotate(x: tf.Tensor4D, {positions, base, pairing, dataFormat}: RotateOptions): tf.Tensor4D {
  const [B, r] = [x.shape[0], x.shape[3]];
  const N = x.shape[dataFormat === 'BHND' ? 2 : 1];
  if (x.size === 0) {
    return tf.clone(x);
  }
  return tf.tidy(() => {
    const {cos, sin} = tables(positions, N, r, base, pairing);
    const shape: [number, number, number] = [typeof positions === 'number' ? 1 : B, N, r];
    const inputs = {x, cos: tf.tensor3d(cos, shape), sin: tf.tensor3d(sin, shape)};
    const attrs = {pairing, dataFormat};
    return tf.getKernel(Rotate, tf.getBackend()) == null
      ? (composedRotate(inputs, attrs) as tf.Tensor4D)
      : (tf.engine().runKernel(Rotate, inputs, attrs) as tf.Tensor4D);
  });
}

interface Tables {
  /** [N,r] or [B,N,r]: the cosine of each feature's pair. */
  cos: Float32Array;
  /** The sine, negative for the first member of a pair. */
  sin: Float32Array;
}

/** A layer rotates q and k by the same angles, every layer and every training step: keep the last few tables. */
const kept = new Map<string, Tables>();
const KEEP = 4;

function tables(positions: Positions, N: number, r: number, base: number, pairing: RotaryPairing): Tables {
  if (typeof positions !== 'number') {
    return makeTables(positions, r, base, pairing);
  }
  const key = [positions, N, r, base, pairing].join();
  let found = kept.get(key);
  if (found === undefined) {
    found = makeTables(
      Array.from({length: N}, (_, n) => positions + n),
      r,
      base,
      pairing,
    );
    if (kept.size >= KEEP) {
      kept.delete(kept.keys().next().value as string);
    }
    kept.set(key, found);
  }
  return found;
}

function makeTables(positions: ArrayLike<number>, r: number, base: number, pairing: RotaryPairing): Tables {
  const half = r / 2;
  const cos = new Float32Array(positions.length * r);
  const sin = new Float32Array(positions.length * r);
  const [step, apart] = pairing === 'half' ? [1, half] : [2, 1];
  const frequencies = Array.from({length: half}, (_, i) => base ** ((-2 * i) / r));
  for (let n = 0; n < positions.length; n++) {
    for (let i = 0; i < half; i++) {
      const angle = positions[n] * frequencies[i];
      const first = n * r + i * step;
      cos[first] = Math.cos(angle);
      cos[first + apart] = cos[first];
      sin[first + apart] = Math.sin(angle);
      sin[first] = -sin[first + apart];
    }
  }
  return {cos, sin};
}
