/** What no way of cutting a call makes smaller: its tensors, and what one token of one head needs. */
import * as tf from '@tensorflow/tfjs-core';
import {isOnGpu, type WebglBackend} from '../../tfjs';
import {type Dims, dimsOf, type LinearAttentionAttrs, type LinearAttentionInputs} from '../spec';
import {hopeless} from './plan';

/** Texels of a packed texture. */
const packed = (batch: number, rows: number, columns: number): number =>
  batch * Math.ceil(rows / 2) * Math.ceil(columns / 2);

/** What a call cannot do without, in texels. */
function needed(
  backend: WebglBackend,
  inputs: LinearAttentionInputs,
  {B, H, Nq, r, d}: Dims,
  attrs: LinearAttentionAttrs,
): {[name: string]: number} {
  const {q, k, v} = inputs;
  // tfjs gives every value of an array a texel when it first uploads it.
  const uploads = Object.entries({q, k, v}).filter(([, x]) => !isOnGpu(backend, x));
  return {
    ...Object.fromEntries(
      uploads.map(([name, {shape}]) => [`${name} [${shape}]`, tf.util.sizeFromShape(shape)]),
    ),
    'the output': packed(B * H, Nq, d),
    ...(attrs.returnState === false ? {} : {'the state': packed(B * H, r, d)}),
  };
}

/**
 * Does nothing where a call fits, or parts of it do.
 *
 * @throws Error that names what is too large for a texture of this device.
 */
export function checkTextures(
  backend: WebglBackend,
  inputs: LinearAttentionInputs,
  attrs: LinearAttentionAttrs,
): void {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const side = tf.env().getNumber('WEBGL_MAX_TEXTURE_SIZE');
  const fail = (what: string, texels: number | string, advice: string) => {
    const {q, k, v} = inputs;
    throw new Error(
      `linearAttention: ${what} needs ${texels} texels, and this device's textures hold ${side} x ${side}; got q [${q.shape}], k [${k.shape}], v [${v.shape}]. ${advice}`,
    );
  };
  for (const [name, texels] of Object.entries(needed(backend, inputs, dims, attrs))) {
    if (texels > side * side) {
      fail(name, texels, 'Call it on parts of the batch, the heads or (with initialState) the sequence.');
    }
  }
  const part = hopeless(dims, attrs);
  if (part !== null) {
    fail(
      `the texture of ${part.name}, for one token of one head,`,
      part.sides,
      'Use fewer features or values.',
    );
  }
}
