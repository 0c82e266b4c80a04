/**
 * What each chunk of tokens adds to the state, one [R, D] per chunk and head: a^T b over its tokens (einsum
 * `bcnr,bcnd->bcrd`). In forward a is phi(k) and b is [v, 1], in backward phi(q) and the gradient at [numerator,
 * denominator].
 */
import type {Drawing} from '../../webgl/draw';
import {PRODUCTS, walk} from '../../webgl/glsl';
import type {GridTexture} from '../../webgl/grid';
import {type Chunks, type Plan, statesGrid} from './plan';
import type {Rows} from './rows';

export function drawStates(drawing: Drawing, a: Rows, b: Rows, over: Chunks, plan: Plan): GridTexture {
  const {L, means} = plan;
  return drawing.drawGrid(
    {
      name: 'attention states',
      grids: {A: a.texture, B: b.texture},
      uniforms: {
        chunks: over.chunks,
        tokens: over.tokens,
        startA: a.start,
        strideA: a.stride,
        startB: b.start,
        strideB: b.stride,
      },
      code: `
${PRODUCTS}
void main() {
  int unit, row, column;
  if (!locate(unit, row, column)) { setOutput(vec4(0.)); return; }
  int bh = unit / chunks;
  int chunk = unit - bh * chunks;
  int count = min(${L}, tokens - chunk * ${L});
  vec2 a0 = atA(bh * strideA + startA + chunk, 0, row);
  vec2 b0 = atB(bh * strideB + startB + chunk, 0, column);
  vec4 sum = vec4(0.);
  ${walk('(count + 1) / 2', {a: ['a0', 'downA'], b: ['b0', 'downB']}, 'sum += timesTN(texture(A, a), texture(B, b));')}
  setOutput(${means ? 'sum / float(count)' : 'sum'});
}
`,
    },
    statesGrid(plan, over.chunks),
  );
}
