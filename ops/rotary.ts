/** Rotary position embedding. */
import * as tf from '@tensorflow/tfjs-core';
import {shapeOf, toFloat} from '../src/convert';
import {check, checkInteger, checkNumber, checkOneOf, checkOptions, showShape} from '../src/errors';
import type {DataFormat} from '../src/linear_attention/spec';
import {type RotaryPairing, rotate} from '../src/rotary';
import type {Input} from './attention_shapes';

/** Options of `rotary`. */
export interface RotaryOptions {
  /** Position of the first token. Default 0. */
  offset?: number;
  /** Wavelengths run from 2 pi to 2 pi base. Default 10000. */
  base?: number;
  /** 'half' (default) pairs x_i with x_(i + r/2); 'interleaved' pairs x_2i with x_(2i+1). */
  pairing?: RotaryPairing;
  /** 'BHND' ([B,H,N,r], default) or 'BNHD' ([B,N,H,r]). */
  dataFormat?: DataFormat;
}

const FN = 'rotary';

/**
 * Rotary position embedding: turns each pair of features of the token at position p = offset + n by the angle
 * p base^(-2i/r), so that the dot product of a rotated query and a rotated key depends on their distance only.
 * Differentiable to any order.
 *
 * ```js
 * const q = tf.randomNormal([1, 2, 5, 8], 0, 1, 'float32', 1);
 * rotary(q).print(); // [1,2,5,8]
 * ```
 *
 * @param x [B,H,N,r], or [B,N,r] for one head; r even.
 * @returns The shape of x.
 * @throws When r is odd, on other ranks, on unknown options.
 *
 * Source: Su et al. 2021 (RoFormer), https://arxiv.org/abs/2104.09864, section 3.2.2.
 */
export function rotary(x: Input, options: RotaryOptions = {}): tf.Tensor {
  checkOptions(FN, options, ['offset', 'base', 'pairing', 'dataFormat']);
  const {offset = 0, base = 10000, pairing = 'half', dataFormat = 'BHND'} = options;
  checkInteger(FN, 'offset', offset, 0);
  checkNumber(FN, 'base', base, {min: 0, exclusive: true});
  checkOneOf(FN, 'pairing', pairing, ['half', 'interleaved']);
  checkOneOf(FN, 'dataFormat', dataFormat, ['BHND', 'BNHD']);
  const shape = shapeOf(FN, 'x', x);
  check(
    shape.length === 3 || shape.length === 4,
    FN,
    () =>
      `expected x to have rank 4 (${dataFormat === 'BHND' ? '[B,H,N,r]' : '[B,N,H,r]'}) or 3 ([B,N,r]); got ${showShape(shape)}.`,
  );
  const r = shape[shape.length - 1];
  check(
    r > 0 && r % 2 === 0,
    FN,
    () =>
      `expected an even number of features (x.shape[${shape.length - 1}]); got ${r} in x ${showShape(shape)}.`,
  );
  return tf.tidy(() => {
    const float = toFloat(x);
    if (shape.length === 3) {
      const [B, N] = shape;
      const turned = rotate(tf.reshape(float, [B, 1, N, r]), {
        positions: offset,
        base,
        pairing,
        dataFormat: 'BHND',
      });
      return tf.reshape(turned, shape);
    }
    return rotate(float as tf.Tensor4D, {positions: offset, base, pairing, dataFormat});
  });
}
