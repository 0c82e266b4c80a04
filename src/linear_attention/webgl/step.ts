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
  const token = (x: TensorInfo) => viewed(x, [1, B, H, x.shape[2]]);
  const state = (x: TensorInfo) => viewed(x, [1, B * H, r, d]);
  const uniforms = {heads: H};
  const nextS = drawing.draw({
    name: 'attention step s',
    inputs: {K: token(k), V: token(v), S: state(s)},
    shape: [B * H, r, d],
    uniforms,
    code: `
${mapCode(featureMap)}${TOKEN('K')}${TOKEN('V')}
void main() {
  ivec3 o = getOutputCoords();
  vec4 f = phi(tokenK(o.x, o.y).xxyy);
  setOutput(getS(0, o.x, o.y, o.z) + f * tokenV(o.x, o.z).xyxy);
}
`,
  });
  const nextZ = drawing.draw({
    name: 'attention step z',
    inputs: {K: token(k), Z: token(z)},
    shape: [B, H, r],
    uniforms,
    code: `
${mapCode(featureMap)}
void main() {
  ivec3 o = getOutputCoords();
  setOutput(getZ(0, o.x, o.y, o.z) + phi(getK(0, o.x, o.y, o.z)));
}
`,
  });
  const output = drawing.draw({
    name: 'attention step output',
    inputs: {Q: token(q), S: state(nextS), ...(normalize ? {Z: token(nextZ)} : {})},
    shape: [B, H, d],
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
  ivec3 o = getOutputCoords();
  int bh = o.x * heads + o.y;
  setOutput(vec4(read(bh, o.z), o.y + 1 < heads ? read(bh + 1, o.z) : vec2(0.)));
}
`,
  });
  return [drawing.keep(output), viewed(drawing.keep(nextS), s.shape), drawing.keep(nextZ)];
}
