/**
 * s [B,H,r,d] and z [B,H,r] out of the last slot of a texture of states. They are sums whatever the textures hold: in
 * half floats they end at 65504, which outputs, made of means, do not.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {type Drawing, viewed} from '../../webgl/draw';
import type {Plan} from './plan';
import type {States} from './scan';

/** `count` is the number of tokens whose mean the states hold; 1 for sums. */
export function drawStateParts(
  drawing: Drawing,
  {texture, slots}: States,
  count: number,
  plan: Plan,
): [TensorInfo, TensorInfo] {
  const {B, H, r, d} = plan;
  const shared = {grids: {S: texture}, uniforms: {slots, count, heads: H}};
  const s = drawing.draw(
    {
      ...shared,
      name: 'attention state s',
      code: `
void main() {
  ivec4 o = getOutputCoords();
  vec4 state = texture(S, atS(o.y * slots + slots - 1, o.z / 2, o.w / 2)) * float(count);
  ${d % 2 === 1 ? `if (o.w + 1 == ${d}) state.yw = vec2(0.);` : ''}
  setOutput(state);
}
`,
    },
    [1, B * H, r, d],
  );
  const z = drawing.draw(
    {
      ...shared,
      name: 'attention state z',
      code: `
vec2 z(int bh, int i) {
  return texture(S, atS(bh * slots + slots - 1, i / 2, ${d >> 1})).${d % 2 === 0 ? 'xz' : 'yw'} * float(count);
}
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.y * heads + o.z;
  setOutput(vec4(z(bh, o.w), o.z + 1 < heads ? z(bh + 1, o.w) : vec2(0.)));
}
`,
    },
    [1, B, H, r],
  );
  return [viewed(drawing.keep(s), [B, H, r, d]), viewed(drawing.keep(z), [B, H, r])];
}
