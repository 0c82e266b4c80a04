/**
 * What each chunk of tokens adds to the state, [BH chunks, R, D]: a^T b over its tokens (einsum `bcnr,bcnd->bcrd`). In
 * forward a is phi(k) and b is [v, 1], in backward phi(q) and the gradient at [numerator, denominator].
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {asPairs, type Drawing} from '../../webgl/draw';
import {PRODUCTS, WALK, widthOf} from '../../webgl/glsl';
import type {Chunks, Plan} from './plan';
import type {Rows} from './rows';

/** A Rows' texture as an input of a pass. */
export const pairsOf = ({info, stride, width}: Rows, {B, H}: Plan): TensorInfo =>
  asPairs(info, width, B * H * stride);

export function drawStates(drawing: Drawing, a: Rows, b: Rows, over: Chunks, plan: Plan): TensorInfo {
  const {B, H, R, D, L, means} = plan;
  const {tokens, chunks} = over;
  const [left, right] = [a.width / 2, b.width / 2];
  return drawing.draw({
    name: 'attention states',
    inputs: {A: pairsOf(a, plan), B: pairsOf(b, plan)},
    shape: [1, B * H * chunks, R, D],
    uniforms: {
      chunks,
      tokens,
      startA: a.start,
      strideA: a.stride,
      startB: b.start,
      strideB: b.stride,
    },
    code: `
${WALK}${PRODUCTS}
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.y / chunks;
  int first = (o.y - bh * chunks) * ${L / 2};
  int last = min(first + ${L / 2}, (tokens + 1) / 2);
  int widthA = ${widthOf('A')};
  int widthB = ${widthOf('B')};
  ivec2 a = place((bh * strideA + startA + first) * ${left} + o.z / 2, widthA);
  ivec2 b = place((bh * strideB + startB + first) * ${right} + o.w / 2, widthB);
  vec4 sum = vec4(0.);
  for (int t = first; t < last; t++) {
    sum += timesTN(texelFetch(A, a, 0), texelFetch(B, b, 0));
    a = onward(a, ${left}, widthA);
    b = onward(b, ${right}, widthB);
  }
  ${means ? 'sum /= float(min(2 * last, tokens) - 2 * first);' : ''}
  setOutput(sum);
}
`,
  });
}
