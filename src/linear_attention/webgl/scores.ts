/**
 * Products of the rows of a chunk among themselves, L x L for each chunk of queries: a b^T (einsum `bcir,bcjr->bcij`)
 * where j <= i, 0 above the diagonal, which is not computed. Forward has a = phi(q) and b = phi(k); backward a = the
 * gradient at [numerator, denominator] and b = [v, 1].
 *
 * The last pair of columns holds q.z of the state before the chunk, the outer part of the denominator, so that the pass
 * which divides need not compute it for every value column. Without causality these columns are all there is.
 */
import type {Drawing} from '../../webgl/draw';
import {PRODUCTS, walk} from '../../webgl/glsl';
import type {GridTexture} from '../../webgl/grid';
import type {Plan} from './plan';
import type {Rows} from './rows';
import type {States} from './scan';

/** `inner` is the length of the contracted axis, even. Without `states` the last columns hold nothing. */
export function drawScores(
  drawing: Drawing,
  a: Rows,
  b: Rows,
  inner: number,
  plan: Plan,
  states?: States,
): GridTexture {
  const {R, d, overQueries, attrs, L, scores} = plan;
  const last = scores.width - 1;
  const outer = `
  vec2 a0 = atA(bh * strideA + startA + chunk, row, 0);
  vec2 s0 = atS(bh * slots + ${attrs.causal ? 'chunk' : '0'}, 0, ${d >> 1});
  vec2 sum = vec2(0.);
  ${walk(
    R / 2,
    {a: ['a0', 'alongA'], s: ['s0', 'downS']},
    `vec4 x = texture(A, a); vec2 z = texture(S, s).${d % 2 === 0 ? 'xz' : 'yw'}; sum += x.xz * z.x + x.yw * z.y;`,
  )}
  setOutput(vec4(sum.x, 0., sum.y, 0.));`;
  const inside = `
  if (column > row) { setOutput(vec4(0.)); return; }
  vec2 a0 = atA(bh * strideA + startA + chunk, row, 0);
  vec2 b0 = atB(bh * strideB + startB + chunk, column, 0);
  vec4 sum = vec4(0.);
  ${walk(
    inner / 2,
    {a: ['a0', 'alongA'], b: ['b0', 'alongB']},
    'sum += timesNT(texture(A, a), texture(B, b));',
  )}
  if (column == row) sum.y = 0.;
  setOutput(sum);`;
  return drawing.drawGrid(
    {
      name: 'attention scores',
      grids: {
        A: a.texture,
        ...(attrs.causal ? {B: b.texture} : {}),
        ...(states ? {S: states.texture} : {}),
      },
      uniforms: {
        chunks: overQueries.chunks,
        tokens: overQueries.tokens,
        startA: a.start,
        strideA: a.stride,
        startB: b.start,
        strideB: b.stride,
        slots: states?.slots ?? 0,
      },
      code: `
${PRODUCTS}
void main() {
  int unit, row, column;
  if (!locate(unit, row, column)) { setOutput(vec4(0.)); return; }
  int bh = unit / chunks;
  int chunk = unit - bh * chunks;
  if (chunk * ${L} + 2 * row >= tokens) { setOutput(vec4(0.)); return; }
  if (column == ${last}) {
    ${states ? outer : 'setOutput(vec4(0.));'}
    return;
  }
  ${attrs.causal ? inside : ''}
}
`,
    },
    scores,
  );
}
