/**
 * The gradient at [numerator, denominator] of each query: [dY / den, -(dY.y) / den], or [scale dY, 0] where nothing is
 * divided. The denominator is summed again from the scores: forward need not store it.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import type {Drawing} from '../../webgl/draw';
import {float, walk} from '../../webgl/glsl';
import type {GridTexture} from '../../webgl/grid';
import {readerOf} from './layout';
import type {Plan} from './plan';
import type {Rows} from './rows';

/** Divided by the denominators that `scores` give, or scaled where there are none. */
export function drawNumeratorGradient(
  drawing: Drawing,
  dOutput: TensorInfo,
  output: TensorInfo,
  scores: GridTexture | null,
  plan: Plan,
): Rows {
  const {H, Nq, d, L, overQueries, numerators, attrs} = plan;
  const gradient = readerOf(drawing.backend, dOutput, attrs.dataFormat, 'G');
  const y = readerOf(drawing.backend, output, attrs.dataFormat, 'Y');
  const inside = `
  vec2 w0 = atW(unit, row, 0);
  ${walk('row + 1', {w: ['w0', 'alongW']}, 'vec4 weight = texture(W, w); den += weight.xz + weight.yw;')}`;
  const divided = `
  vec2 den = texture(W, atW(unit, row, ${plan.scores.width - 1})).xz;
  ${attrs.causal ? inside : ''}
  vec2 inverse = vec2(
    den.x == 0. ? 0. : 1. / (den.x + ${float(attrs.eps)}),
    den.y == 0. ? 0. : 1. / (den.y + ${float(attrs.eps)}));
  vec4 x = block(readG(bh, t, c), t, c) * inverse.xxyy;
  if (c + 1 >= ${d}) {
    vec2 sum = vec2(0.);
    for (int i = 0; i < ${d}; i += 2) {
      vec4 products = block(readG(bh, t, i), t, i) * block(readY(bh, t, i), t, i);
      sum += products.xz + products.yw;
    }
    vec2 e = -sum * inverse;
    if (c == ${d}) x = vec4(e.x, 0., e.y, 0.);
    if (c + 1 == ${d}) x.yw = e;
  }
  setOutput(x);`;
  const texture = drawing.drawGrid(
    {
      name: 'attention numerator gradient',
      grids: scores ? {W: scores} : {},
      tensors: {G: gradient.info, ...(scores ? {Y: y.info} : {})},
      uniforms: {heads: H, chunks: overQueries.chunks, lengthG: Nq, lengthY: Nq},
      code: `
${gradient.code}
${scores ? y.code : ''}
// Zeros beyond the tensor.
vec4 block(vec4 x, int t, int c) {
  bvec2 row = lessThan(ivec2(2 * t, 2 * t + 1), ivec2(lengthG));
  bvec2 column = lessThan(ivec2(c, c + 1), ivec2(${d}));
  return vec4(
    row.x && column.x ? x.x : 0., row.x && column.y ? x.y : 0.,
    row.y && column.x ? x.z : 0., row.y && column.y ? x.w : 0.);
}
void main() {
  int unit, row, column;
  if (!locate(unit, row, column)) { setOutput(vec4(0.)); return; }
  int bh = unit / chunks;
  int t = (unit - bh * chunks) * ${L / 2} + row;
  int c = 2 * column;
  if (2 * t >= lengthG) { setOutput(vec4(0.)); return; }
  ${scores ? divided : `setOutput(block(readG(bh, t, c), t, c) * ${float(attrs.scale)});`}
}
`,
    },
    numerators,
  );
  return {texture, start: 0, stride: overQueries.chunks};
}
