/**
 * Weights in fewer bytes, in tfjs's own forms, which every tfjs reads: float16, or whole numbers q of 8 or 16 bits with
 * w = q scale + min for each weight tensor.
 */
import type * as tf from '@tensorflow/tfjs-core';
import {fail} from '../src/errors';

/** How saved weights are stored. */
export type Quantization = 'float16' | 'uint16' | 'uint8';

export const QUANTIZATIONS: readonly Quantization[] = ['float16', 'uint16', 'uint8'];

/** The largest finite half. */
const MAX_HALF = 65504;

/**
 * The float32 weights of rank 2 or more, quantized; the others, biases and gains, which are few and matter much, as they
 * are.
 */
export function quantizeWeights(
  fn: string,
  specs: readonly tf.io.WeightsManifestEntry[],
  data: ArrayBuffer,
  dtype: Quantization,
): {specs: tf.io.WeightsManifestEntry[]; bytes: Uint8Array} {
  const parts: Uint8Array[] = [];
  let at = 0;
  const quantized = specs.map((spec) => {
    const size = spec.shape.reduce((a, b) => a * b, 1);
    const bytes = new Uint8Array(data, at, size * (spec.dtype === 'bool' ? 1 : 4));
    at += bytes.length;
    if (spec.dtype !== 'float32' || spec.shape.length < 2 || size === 0) {
      parts.push(bytes);
      return spec;
    }
    const values = new Float32Array(bytes.slice().buffer);
    checkValues(fn, spec.name, values, dtype);
    const {numbers, ...affine} = dtype === 'float16' ? {numbers: halves(values)} : levels(values, dtype);
    parts.push(new Uint8Array(numbers.buffer));
    return {...spec, quantization: {dtype, ...affine}} as tf.io.WeightsManifestEntry;
  });
  const joined = new Uint8Array(parts.reduce((sum, {length}) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return {specs: quantized, bytes: joined};
}

function checkValues(fn: string, name: string, values: Float32Array, dtype: Quantization): void {
  for (const value of values) {
    if (!Number.isFinite(value)) {
      fail(fn, `the weight '${name}' holds ${value}, which cannot be quantized.`);
    }
    if (dtype === 'float16' && Math.abs(value) > MAX_HALF) {
      fail(fn, `the weight '${name}' holds ${value}; float16 ends at ${MAX_HALF}. 'uint16' can hold it.`);
    }
  }
}

/** Whole numbers that divide the values' range evenly. 0 stays 0 where the range holds it; all that is read is finite. */
function levels(values: Float32Array, dtype: 'uint16' | 'uint8') {
  const [top, numbers] =
    dtype === 'uint8' ? [255, new Uint8Array(values.length)] : [65535, new Uint16Array(values.length)];
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const scale = high > low ? (high - low) / top : 1;
  const min = low <= 0 && high >= 0 && high > low ? -Math.round(-low / scale) * scale : low;
  // Steps through 0 reach up to half a step beyond the values, which float32 may not hold.
  const fits = (q: number) => Number.isFinite(Math.fround(q * scale + min));
  const [first, last] = [fits(0) ? 0 : 1, fits(top) ? top : top - 1];
  for (let i = 0; i < values.length; i++) {
    numbers[i] = Math.min(last, Math.max(first, Math.round((values[i] - min) / scale)));
  }
  return {numbers, scale, min};
}

/** IEEE 754 halves of finite values up to 65504, each the nearest one, the even one of two. */
function halves(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return Uint16Array.from(bits, (word) => {
    const sign = (word >>> 16) & 0x8000;
    const exponent = ((word >>> 23) & 0xff) - 112;
    const mantissa = (word & 0x7fffff) | 0x800000;
    if (exponent > 0) {
      // The sum carries into the exponent where rounding does.
      return sign | (roundedShift(mantissa, 13) + ((exponent - 1) << 10));
    }
    // Below the smallest normal half: the mantissa alone, with its leading bit.
    return sign | (exponent < -10 ? 0 : roundedShift(mantissa, 14 - exponent));
  });
}

/** x / 2^shift, to the nearest whole number, the even one of two. */
function roundedShift(x: number, shift: number): number {
  const half = 1 << (shift - 1);
  const whole = x >>> shift;
  const rest = x & ((1 << shift) - 1);
  return rest > half || (rest === half && (whole & 1) === 1) ? whole + 1 : whole;
}
