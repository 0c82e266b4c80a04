/**
 * One token on webgl, in three passes whose programs depend on nothing but r, d, and the map:
 *
 *     s' = s + phi(k) v^T    z' = z + phi(k)    output = phi(q)^T s' / (phi(q).z' + eps)
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {type Drawing, viewed} from '../../webgl/draw';
import {float} from '../../webgl/glsl';
import type {LinearAttentionStepAttrs, LinearAttentionStepInputs} from '../step';
import {mapCode} from './maps';

/** q, k [B,H,r] and v [B,H,d] hold the columns c, c+1 of two heads in a texel. */
const TOKEN = (name: string) => `
vec2 token${name}(int bh, int c) {
  int b = bh / heads;
  int h = bh - b * heads;
  vec4 x = get${name}(0, b, h, c);
  return imod(h, 2) == 0 ? x.xy : x.zw;
}
`;

export function step(
  drawing: Drawing,
  {q, k, v, s, z}: LinearAttentionStepInputs,
  {featureMap, normalize, eps, scale}: LinearAttentionStepAttrs,
): [output: TensorInfo, s: TensorInfo, z: TensorInfo] {
  const [B, H, r] = q.shape;
  const d = v.shape[2];
  const token = (x: TensorInfo) => viewed(x, [1, B, H, x.shape[x.shape.length - 1]]);
  const state = (x: TensorInfo) => viewed(x, [1, B * H, r, d]);
  const uniforms = {heads: H};
  const nextS = drawing.draw(
    {
      name: 'attention step s',
      tensors: {K: token(k), V: token(v), S: state(s)},
      uniforms,
      code: `
${mapCode(featureMap)}${TOKEN('K')}${TOKEN('V')}
void main() {
  ivec4 o = getOutputCoords();
  vec4 f = phi(tokenK(o.y, o.z).xxyy);
  setOutput(getS(0, o.y, o.z, o.w) + f * tokenV(o.y, o.w).xyxy);
}
`,
    },
    [1, B * H, r, d],
  );
  const nextZ = drawing.draw(
    {
      name: 'attention step z',
      tensors: {K: token(k), Z: token(z)},
      uniforms,
      code: `
${mapCode(featureMap)}
void main() {
  ivec4 o = getOutputCoords();
  setOutput(getZ(0, o.y, o.z, o.w) + phi(getK(0, o.y, o.z, o.w)));
}
`,
    },
    [1, B, H, r],
  );
  const output = drawing.draw(
    {
      name: 'attention step output',
      tensors: {Q: token(q), S: state(nextS), ...(normalize ? {Z: token(nextZ)} : {})},
      uniforms,
      code: `
${mapCode(featureMap)}${TOKEN('Q')}${normalize ? TOKEN('Z') : ''}
vec2 read(int bh, int c) {
  vec2 sum = vec2(0.);
  float den = 0.;
  for (int i = 0; i < ${r}; i += 2) {
    vec2 f = phi(tokenQ(bh, i).xxyy).xz;
    vec4 state = getS(0, bh, i, c);
    ${normalize ? 'vec2 z = tokenZ(bh, i);' : ''}
    sum += f.x * state.xy;
    ${normalize ? 'den += f.x * z.x;' : ''}
    if (i + 1 < ${r}) {
      sum += f.y * state.zw;
      ${normalize ? 'den += f.y * z.y;' : ''}
    }
  }
  return ${normalize ? `den == 0. ? vec2(0.) : sum / (den + ${float(eps)})` : `sum * ${float(scale)}`};
}
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.y * heads + o.z;
  setOutput(vec4(read(bh, o.w), o.z + 1 < heads ? read(bh + 1, o.w) : vec2(0.)));
}
`,
    },
    [1, B, H, d],
  );
  return [
    viewed(drawing.keep(output), [B, H, d]),
    viewed(drawing.keep(nextS), s.shape),
    viewed(drawing.keep(nextZ), z.shape),
  ];
}
