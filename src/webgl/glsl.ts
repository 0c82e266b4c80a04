/** GLSL that the programs share. A texel (r g; b a) is the block x y / z w of two rows and two columns. */

/**
 * Walking over a texture of packed rows without a division per fetch: `place` finds texel number `index` (in row-major
 * order over all texels), `onward` moves `by` texels on, at most one row of the texture.
 */
export const WALK = `
ivec2 place(int index, int width) { int y = index / width; return ivec2(index - y * width, y); }
ivec2 onward(ivec2 p, int by, int width) {
  int x = p.x + by;
  return x < width ? ivec2(x, p.y) : ivec2(x - width, p.y + 1);
}
`;

/** Texels in a row of a sampler's texture. */
export const widthOf = (sampler: string): string => `((${sampler}TexShape[1] + 1) / 2)`;

/** 2x2 blocks: a b, a b^T and a^T b. */
export const PRODUCTS = `
vec4 timesNN(vec4 a, vec4 b) { return a.xxzz * b.xyxy + a.yyww * b.zwzw; }
vec4 timesNT(vec4 a, vec4 b) { return a.xxzz * b.xzxz + a.yyww * b.ywyw; }
vec4 timesTN(vec4 a, vec4 b) { return a.xxyy * b.xyxy + a.zzww * b.zwzw; }
`;

/** A number as a GLSL literal of type float. */
export function float(x: number): string {
  const text = String(x);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
