/** s [B,H,r,d] and z [B,H,r] out of the last slot of a texture of states [BH slots, R, D]. */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {type Drawing, viewed} from '../../webgl/draw';
import {WALK, widthOf} from '../../webgl/glsl';
import type {Plan} from './plan';
import type {States} from './scan';
import {statesView} from './scores';

/** `count` is the number of tokens whose mean the states hold; 1 for sums. */
export function drawStateParts(
  drawing: Drawing,
  states: States,
  count: number,
  plan: Plan,
): [TensorInfo, TensorInfo] {
  const {B, H, R, D, r, d} = plan;
  const inputs = {S: statesView(states, plan)};
  const uniforms = {slots: states.slots, count};
  const last = `(bh * slots + slots - 1) * ${(R * D) / 4}`;
  const s = drawing.draw({
    name: 'attention state s',
    inputs,
    uniforms,
    shape: [B * H, r, d],
    code: `
${WALK}
void main() {
  ivec3 o = getOutputCoords();
  int bh = o.x;
  vec4 state = texelFetch(S, place(${last} + (o.y / 2) * ${D / 2} + o.z / 2, ${widthOf('S')}), 0) * float(count);
  ${d % 2 === 1 ? `if (o.z + 1 == ${d}) state.yw = vec2(0.);` : ''}
  setOutput(state);
}
`,
  });
  const z = drawing.draw({
    name: 'attention state z',
    inputs,
    uniforms: {...uniforms, heads: H},
    shape: [B, H, r],
    code: `
${WALK}
vec2 z(int bh, int i) {
  vec4 state = texelFetch(S, place(${last} + (i / 2) * ${D / 2} + ${d >> 1}, ${widthOf('S')}), 0);
  return ${d % 2 === 0 ? 'state.xz' : 'state.yw'} * float(count);
}
void main() {
  ivec3 o = getOutputCoords();
  int bh = o.x * heads + o.y;
  setOutput(vec4(z(bh, o.z), o.y + 1 < heads ? z(bh + 1, o.z) : vec2(0.)));
}
`,
  });
  drawing.keep(z);
  return [viewed(drawing.keep(s), [B, H, r, d]), z];
}
