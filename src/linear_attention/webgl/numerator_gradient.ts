/**
 * The gradient at [numerator, denominator] of each query, [BH, 2 queries, D]: [dY / den, -(dY.y) / den], or
 * [scale dY, 0] where nothing is divided. The denominator is summed again from the scores: forward need not store it.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {asPairs, type Drawing} from '../../webgl/draw';
import {float, WALK, widthOf} from '../../webgl/glsl';
import {readerOf} from './layout';
import type {Plan} from './plan';
import type {Rows} from './rows';
import {scoreColumns} from './scores';

export function drawNumeratorGradient(
  drawing: Drawing,
  dOutput: TensorInfo,
  output: TensorInfo,
  scores: TensorInfo | null,
  plan: Plan,
): Rows {
  const {B, H, Nq, D, d, L, queries, attrs} = plan;
  const columns = scoreColumns(plan) + 2;
  const gradient = readerOf(drawing.backend, dOutput, attrs.dataFormat, 'G');
  const y = readerOf(drawing.backend, output, attrs.dataFormat, 'Y');
  const inner = attrs.causal
    ? `
  int chunk = (t / ${L / 2}) * ${L / 2};
  for (int u = chunk; u <= t; u++) {
    vec4 weight = texelFetch(W, place((bh * queries + t) * ${columns / 2} + u - chunk, widthW), 0);
    den += weight.xz + weight.yw;
  }`
    : '';
  const divided = `
  int widthW = ${widthOf('W')};
  vec2 den = texelFetch(W, place((bh * queries + t) * ${columns / 2} + ${columns / 2 - 1}, widthW), 0).xz;
  ${inner}
  vec2 inverse = vec2(
    den.x == 0. ? 0. : 1. / (den.x + ${float(attrs.eps)}),
    den.y == 0. ? 0. : 1. / (den.y + ${float(attrs.eps)}));
  vec4 x = block(readG(bh, t, c), t, c) * inverse.xxyy;
  if (c + 1 >= ${d}) {
    vec2 dot = vec2(0.);
    for (int p = 0; p < ${d}; p += 2) {
      vec4 products = block(readG(bh, t, p), t, p) * block(readY(bh, t, p), t, p);
      dot += products.xz + products.yw;
    }
    vec2 e = -dot * inverse;
    if (c == ${d}) x = vec4(e.x, 0., e.y, 0.);
    if (c + 1 == ${d}) x.yw = e;
  }
  setOutput(x);`;
  const info = drawing.draw({
    name: 'attention numerator gradient',
    inputs: {
      G: gradient.info,
      ...(scores ? {Y: y.info, W: asPairs(scores, columns, B * H * queries)} : {}),
    },
    shape: [1, B * H, 2 * queries, D],
    uniforms: {heads: H, queries, lengthG: Nq, lengthY: Nq},
    code: `
${WALK}
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
  ivec4 o = getOutputCoords();
  int bh = o.y;
  int t = o.z / 2;
  int c = o.w;
  ${scores ? divided : `setOutput(block(readG(bh, t, c), t, c) * ${float(attrs.scale)});`}
}
`,
  });
  return {info, start: 0, stride: queries, width: D};
}
