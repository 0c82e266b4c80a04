/**
 * Textures that passes hand to each other. A texel is a 2x2 block of values; a *unit* is a rectangle of texels that a
 * loop walks over without ever leaving it (the rows of one chunk, one state). Units lie below each other in as many bands
 * as the device's texture size makes necessary, so that positions inside a unit are plain sums, with no wrapping at the
 * texture's edge: tfjs's own layout of a long tensor costs an integer division per fetch.
 */
import * as tf from '@tensorflow/tfjs-core';

export interface Grid {
  units: number;
  /** Of a unit, in texels. */
  height: number;
  width: number;
  /** Units below each other. */
  perBand: number;
  bands: number;
}

export interface GridTexture extends Grid {
  info: tf.TensorInfo;
}

/** How units lie in a texture. */
export function gridOf(units: number, height: number, width: number): Grid {
  const side = tf.env().getNumber('WEBGL_MAX_TEXTURE_SIZE');
  const perBand = Math.max(1, Math.min(units, Math.floor(side / height)));
  return {units, height, width, perBand, bands: Math.ceil(units / perBand)};
}

/** Whether the device has textures of this size. */
export function fits({perBand, height, bands, width}: Grid): boolean {
  const side = tf.env().getNumber('WEBGL_MAX_TEXTURE_SIZE');
  return perBand * height <= side && bands * width <= side;
}

/** The texture's shape as a tensor, of rank 4: tfjs then keeps all of it in uniforms. */
export const gridShape = ({perBand, height, bands, width}: Grid): number[] => [
  1,
  1,
  2 * perBand * height,
  2 * bands * width,
];

/** Uniforms of a grid; `name` is its sampler's, or 'Out'. */
export const gridUniforms = (name: string, {units, perBand, height}: Grid): {[uniform: string]: number} => ({
  [`units${name}`]: units,
  [`perBand${name}`]: perBand,
  [`height${name}`]: height,
});

/**
 * For a sampler X: `atX(unit, row, column)` is the place of a texel, `X(place)` its block, and `alongX` and `downX` lead to
 * the next texel of a row and of a column.
 */
export const gridCode = (name: string, {width}: Grid): string => `
#define along${name} vec2(2. / float(${name}TexShape[1]), 0.)
#define down${name} vec2(0., 2. / float(${name}TexShape[0]))
vec2 at${name}(int unit, int row, int column) {
  int band = unit / perBand${name};
  vec2 texel = vec2(band * ${width} + column, (unit - band * perBand${name}) * height${name} + row);
  return 2. * (texel + 0.5) / vec2(${name}TexShape[1], ${name}TexShape[0]);
}
`;

/** Declares `bool locate(out int unit, out int row, out int column)` of the texel that is drawn; false: it is in no unit. */
export const outputCode = ({width}: Grid): string => `
bool locate(out int unit, out int row, out int column) {
  ivec2 texel = ivec2(gl_FragCoord.xy);
  int band = texel.x / ${width};
  int down = texel.y / heightOut;
  unit = band * perBandOut + down;
  row = texel.y - down * heightOut;
  column = texel.x - band * ${width};
  return unit < unitsOut;
}
`;
