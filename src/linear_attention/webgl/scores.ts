/**
 * Products of the rows of a chunk among themselves, [BH, 2 queries, L + 2]: a b^T (einsum `bcir,bcjr->bcij`) where
 * j <= i, 0 above the diagonal, which is not computed. Forward has a = phi(q) and b = phi(k); backward a = the gradient
 * at [numerator, denominator] and b = [v, 1].
 *
 * With a state the column L holds q.z of the state before the chunk, the outer part of the denominator, so that the pass
 * which divides need not compute it for every value column. Without causality that column is all there is.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {asPairs, type Drawing} from '../../webgl/draw';
import {PRODUCTS, WALK, widthOf} from '../../webgl/glsl';
import type {Plan} from './plan';
import type {Rows} from './rows';
import type {States} from './scan';
import {pairsOf} from './states';

/** Columns of products in the texture of a plan's scores. */
export const scoreColumns = ({attrs, L}: Plan): number => (attrs.causal ? L : 0);

/** A texture of states as an input of a pass. */
export const statesView = ({info, slots}: States, {B, H, R, D}: Plan): TensorInfo =>
  asPairs(info, D, (B * H * slots * R) / 2);

/** Where the state of query pair t lies among a texture's slots, as GLSL. */
export const slotOf = ({attrs, L}: Plan): string => (attrs.causal ? `t / ${L / 2}` : '0');

/** `inner` is the length of the contracted axis, even. */
export function drawScores(
  drawing: Drawing,
  a: Rows,
  b: Rows,
  inner: number,
  plan: Plan,
  states?: States,
): TensorInfo {
  const {B, H, R, D, d, queries} = plan;
  const L = scoreColumns(plan);
  const [left, right] = [a.width / 2, b.width / 2];
  const outer = `
  if (j == ${L / 2}) {
    int widthS = ${widthOf('S')};
    ivec2 pa = place((bh * strideA + startA + t) * ${left}, widthA);
    ivec2 ps = place((bh * slots + ${slotOf(plan)}) * ${(R * D) / 4} + ${d >> 1}, widthS);
    vec2 sum = vec2(0.);
    for (int p = 0; p < ${R / 2}; p++) {
      vec4 x = texelFetch(A, pa, 0);
      vec4 state = texelFetch(S, ps, 0);
      vec2 z = ${d % 2 === 0 ? 'state.xz' : 'state.yw'};
      sum += x.xz * z.x + x.yw * z.y;
      pa = onward(pa, 1, widthA);
      ps = onward(ps, ${D / 2}, widthS);
    }
    setOutput(vec4(sum.x, 0., sum.y, 0.));
    return;
  }`;
  return drawing.draw({
    name: 'attention scores',
    inputs: {A: pairsOf(a, plan), B: pairsOf(b, plan), ...(states ? {S: statesView(states, plan)} : {})},
    shape: [1, B * H, 2 * queries, L + (states ? 2 : 0)],
    uniforms: {
      startA: a.start,
      strideA: a.stride,
      startB: b.start,
      strideB: b.stride,
      slots: states?.slots ?? 0,
    },
    code: `
${WALK}${PRODUCTS}
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.y;
  int t = o.z / 2;
  int j = o.w / 2;
  int widthA = ${widthOf('A')};
  ${states ? outer : ''}
  ${
    L === 0
      ? 'setOutput(vec4(0.));'
      : `
  int u = (t / ${L / 2}) * ${L / 2} + j;
  if (u > t) {
    setOutput(vec4(0.));
    return;
  }
  int widthB = ${widthOf('B')};
  ivec2 a = place((bh * strideA + startA + t) * ${left}, widthA);
  ivec2 b = place((bh * strideB + startB + u) * ${right}, widthB);
  vec4 sum = vec4(0.);
  for (int p = 0; p < ${inner / 2}; p++) {
    sum += timesNT(texelFetch(A, a, 0), texelFetch(B, b, 0));
    a = onward(a, 1, widthA);
    b = onward(b, 1, widthB);
  }
  if (u == t) sum.y = 0.;
  setOutput(sum);`
  }
}
`,
  });
}
