/**
 * The pass that ends forward and each gradient: rows times the state outside their chunk, plus the chunk's scores times
 * other rows.
 *
 *     output   phi(q) S   + scores [v, 1]       divided by its last column
 *     dphi(q)  dN S^T     + dscores phi(k)
 *     dphi(k)  [v, 1] G^T + dscores^T phi(q)
 *     dv       phi(k) G   + scores^T dN
 *
 * S is the state before the chunk, G the gradient of the state after it, dN the gradient at [numerator, denominator].
 * What a later token holds is not touched, not even to multiply it by 0: it may be NaN.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {asPairs, type Drawing, viewed} from '../../webgl/draw';
import {float, PRODUCTS, WALK, widthOf} from '../../webgl/glsl';
import {drawHeads} from './heads';
import {MASK, maskView, writerOf} from './layout';
import {derivativeCode} from './maps';
import type {Plan} from './plan';
import type {Rows} from './rows';
import type {States} from './scan';
import {scoreColumns, slotOf, statesView} from './scores';
import {pairsOf} from './states';

export interface Reading {
  name: string;
  /** Rows that are multiplied by the state, over its rows ('NN') or its columns ('NT'). */
  rows: Rows;
  states: States;
  outer: 'NN' | 'NT';
  /** The chunk's part: scores of earlier tokens ('lower') or of later ones ('upper'), times `other`. */
  scores?: TensorInfo;
  /** The scores' texture has the column of denominators. */
  scoresDivide?: boolean;
  triangle?: 'lower' | 'upper';
  other?: Rows;
  /** Tokens and width of the result. */
  tokens: number;
  width: number;
  /** How the result is finished: divided, scaled, or times the map's derivative at these mapped rows. */
  finish: {kind: 'divide'} | {kind: 'scale'; by: number} | {kind: 'chain'; phi: Rows} | {kind: 'none'};
  /** Selects 0 where it is 0. */
  mask?: TensorInfo;
}

function triangleCode({triangle, other}: Reading, plan: Plan, columns: number, divides: boolean): string {
  const half = plan.L / 2;
  const row = columns / 2;
  const right = (other as Rows).width / 2;
  const lower = triangle === 'lower';
  // Weights of pair t: along its row of the scores, or down its column.
  return `
  int chunk = (t / ${half}) * ${half};
  int widthW = ${widthOf('W')};
  int widthB = ${widthOf('B')};
  ${
    lower
      ? `
  ivec2 w = place((bh * queries + t) * ${row}, widthW);
  ivec2 b = place((bh * strideB + startB + chunk) * ${right} + c / 2, widthB);
  for (int u = chunk; u < t; u++) {
    vec4 weight = texelFetch(W, w, 0);
    sum += timesNN(weight, texelFetch(B, b, 0));
    ${divides ? 'den += weight.xz + weight.yw;' : ''}
    w = onward(w, 1, widthW);
    b = onward(b, ${right}, widthB);
  }
  vec4 weight = texelFetch(W, w, 0);
  vec4 x = texelFetch(B, b, 0);
  sum.xy += weight.x * x.xy;
  sum.zw += weight.z * x.xy + weight.w * x.zw;
  ${divides ? 'den += vec2(weight.x, weight.z + weight.w);' : ''}`
      : `
  ivec2 w = place((bh * queries + t) * ${row} + t - chunk, widthW);
  ivec2 b = place((bh * strideB + startB + t) * ${right} + c / 2, widthB);
  vec4 weight = texelFetch(W, w, 0);
  vec4 x = texelFetch(B, b, 0);
  sum.xy += weight.x * x.xy + weight.z * x.zw;
  sum.zw += weight.w * x.zw;
  int last = min(chunk + ${half}, queries);
  for (int u = t + 1; u < last; u++) {
    w = onward(w, ${row}, widthW);
    b = onward(b, ${right}, widthB);
    sum += timesTN(texelFetch(W, w, 0), texelFetch(B, b, 0));
  }`
  }`;
}

function finishCode({finish}: Reading, {attrs}: Plan): string {
  switch (finish.kind) {
    case 'divide':
      return `
  sum.xy = den.x == 0. ? vec2(0.) : sum.xy / (den.x + ${float(attrs.eps)});
  sum.zw = den.y == 0. ? vec2(0.) : sum.zw / (den.y + ${float(attrs.eps)});`;
    case 'scale':
      return finish.by === 1 ? '' : `sum *= ${float(finish.by)};`;
    case 'chain':
      return attrs.featureMap === 'identity'
        ? ''
        : `
  int widthP = ${widthOf('P')};
  ivec2 p = place((bh * strideP + startP + t) * ${finish.phi.width / 2} + c / 2, widthP);
  sum *= derivative(texelFetch(P, p, 0));`;
    case 'none':
      return '';
  }
}

/** The number of tokens in the mean that slot t's state is. */
const countCode = ({attrs, L}: Plan): string => {
  const before = attrs.causal ? `(t / ${L / 2}) * ${L}` : 'tokens';
  return `float count = float(max(1, ${before} + ${attrs.hasState ? 1 : 0}));`;
};

export function drawRead(drawing: Drawing, reading: Reading, plan: Plan): TensorInfo {
  const {B, H, R, D, queries, attrs, means, Nk} = plan;
  const {rows, states, outer, scores, triangle, other, tokens, width, finish, mask} = reading;
  const divides = finish.kind === 'divide';
  const chain = finish.kind === 'chain' && attrs.featureMap !== 'identity' ? finish.phi : null;
  const columns = scoreColumns(plan) + (reading.scoresDivide ? 2 : 0);
  const left = rows.width / 2;
  const inner = (outer === 'NN' ? R : D) / 2;
  const writer = writerOf(B, H, tokens, width, attrs.dataFormat);
  const info = drawing.draw({
    name: `attention ${reading.name}`,
    inputs: {
      A: pairsOf(rows, plan),
      S: statesView(states, plan),
      ...(scores ? {W: asPairs(scores, columns, B * H * queries)} : {}),
      ...(other ? {B: pairsOf(other, plan)} : {}),
      ...(chain ? {P: pairsOf(chain, plan)} : {}),
      ...(mask ? {Mask: maskView(mask)} : {}),
    },
    shape: writer.shape,
    uniforms: {
      heads: H,
      tokens: Nk,
      queries,
      slots: states.slots,
      startA: rows.start,
      strideA: rows.stride,
      startB: other?.start ?? 0,
      strideB: other?.stride ?? 0,
      startP: chain?.start ?? 0,
      strideP: chain?.stride ?? 0,
    },
    code: `
${WALK}${PRODUCTS}
${writer.code}
${chain ? derivativeCode(attrs.featureMap) : ''}
${mask ? MASK : ''}
void main() {
  int bh, t, c;
  locate(bh, t, c);
  int widthA = ${widthOf('A')};
  int widthS = ${widthOf('S')};
  ivec2 a = place((bh * strideA + startA + t) * ${left}, widthA);
  ivec2 s = place(((bh * slots + ${slotOf(plan)}) * ${R / 2} ${outer === 'NN' ? '' : '+ c / 2'}) * ${D / 2} ${outer === 'NN' ? '+ c / 2' : ''}, widthS);
  vec4 sum = vec4(0.);
  for (int p = 0; p < ${inner}; p++) {
    sum += times${outer}(texelFetch(A, a, 0), texelFetch(S, s, 0));
    a = onward(a, 1, widthA);
    s = onward(s, ${outer === 'NN' ? D / 2 : 1}, widthS);
  }
  ${means ? `${countCode(plan)} sum *= count;` : ''}
  ${divides ? `vec2 den = texelFetch(W, place((bh * queries + t) * ${columns / 2} + ${columns / 2 - 1}, ${widthOf('W')}), 0).xz${means ? ' * count' : ''};` : ''}
  ${triangle ? triangleCode(reading, plan, columns, divides) : ''}
  ${finishCode(reading, plan)}
  ${mask ? 'vec2 keep = readMask(bh, t); if (keep.x == 0.) sum.xy = vec2(0.); if (keep.y == 0.) sum.zw = vec2(0.);' : ''}
  ${width % 2 === 1 ? `if (c + 1 == ${width}) sum.yw = vec2(0.);` : ''}
  setOutput(sum);
}
`,
  });
  return writer.unfinished
    ? drawHeads(drawing, info, tokens, width, plan)
    : viewed(drawing.keep(info), userShape(tokens, width, plan));
}

function userShape(N: number, width: number, {B, H, attrs}: Plan): number[] {
  return attrs.dataFormat === 'BHND' ? [B, H, N, width] : [B, N, H, width];
}
