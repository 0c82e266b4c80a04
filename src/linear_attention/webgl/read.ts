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
import {type Drawing, viewed} from '../../webgl/draw';
import {float, PRODUCTS, walk} from '../../webgl/glsl';
import type {GridTexture} from '../../webgl/grid';
import {drawHeads} from './heads';
import {MASK, maskView, writerOf} from './layout';
import {derivativeCode} from './maps';
import type {Plan} from './plan';
import type {Rows} from './rows';
import type {States} from './scan';

/** How a result is finished. */
export type Finish =
  | {kind: 'divide'; scores: GridTexture}
  | {kind: 'scale'; by: number}
  /** Times the map's derivative at these mapped rows. */
  | {kind: 'chain'; phi: Rows};

export interface Reading {
  name: string;
  /** Rows that are multiplied by the state, over its rows ('NN') or its columns ('NT'). */
  rows: Rows;
  states: States;
  outer: 'NN' | 'NT';
  /** The chunk's part: scores of earlier tokens ('lower') or of later ones ('upper'), times `other`. */
  inside?: {triangle: 'lower' | 'upper'; scores: GridTexture; other: Rows};
  /** Tokens and width of the result. */
  tokens: number;
  width: number;
  finish: Finish;
  /** Selects 0 where it is 0. */
  mask?: TensorInfo;
}

/** Adds the chunk's part to `sum`, and where something is divided, its weights to `den`. */
function insideCode({inside, finish}: Reading, {L}: Plan): string {
  const divides = finish.kind === 'divide';
  if (inside === undefined) {
    return '';
  }
  if (inside.triangle === 'lower') {
    return `
  vec2 w0 = atW(unitW, row, 0);
  vec2 b0 = atB(bh * strideB + startB + chunk, 0, column);
  ${walk(
    'row',
    {w: ['w0', 'alongW'], b: ['b0', 'downB']},
    `vec4 weight = texture(W, w); sum += timesNN(weight, texture(B, b)); ${divides ? 'den += weight.xz + weight.yw;' : ''}`,
  )}
  vec4 weight = texture(W, w0 + float(row) * alongW);
  vec4 x = texture(B, b0 + float(row) * downB);
  sum.xy += weight.x * x.xy;
  sum.zw += weight.z * x.xy + weight.w * x.zw;
  ${divides ? 'den += vec2(weight.x, weight.z + weight.w);' : ''}`;
  }
  return `
  vec2 w0 = atW(unitW, row, row);
  vec2 b0 = atB(bh * strideB + startB + chunk, row, column);
  vec4 weight = texture(W, w0);
  vec4 x = texture(B, b0);
  sum.xy += weight.x * x.xy + weight.z * x.zw;
  sum.zw += weight.w * x.zw;
  w0 += downW;
  b0 += downB;
  int later = min(${L / 2}, (tokens + 1) / 2 - chunk * ${L / 2}) - row - 1;
  ${walk('later', {w: ['w0', 'downW'], b: ['b0', 'downB']}, 'sum += timesTN(texture(W, w), texture(B, b));')}`;
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
        : 'sum *= derivative(texture(P, atP(bh * strideP + startP + chunk, row, column)));';
  }
}

/** Multiplies means by the number of tokens that they are of. */
function sumsFromMeans({attrs, L}: Plan): string {
  const before = attrs.causal ? `chunk * ${L}` : 'over';
  return `
  float count = float(max(1, ${before} + initialTokens));
  sum *= count;
  den *= count;`;
}

export function drawRead(drawing: Drawing, reading: Reading, plan: Plan): TensorInfo {
  const {B, H, R, D, L, attrs, means, Nk, initialTokens, overQueries, scores} = plan;
  const {rows, states, outer, inside, tokens, width, finish, mask} = reading;
  const chained = finish.kind === 'chain' && attrs.featureMap !== 'identity' ? finish.phi : null;
  const weights = finish.kind === 'divide' ? finish.scores : inside?.scores;
  const writer = writerOf(B, H, tokens, width, attrs.dataFormat);
  const slot = `bh * slots + ${attrs.causal ? 'chunk' : '0'}`;
  const info = drawing.draw(
    {
      name: `attention ${reading.name}`,
      grids: {
        A: rows.texture,
        S: states.texture,
        ...(weights ? {W: weights} : {}),
        ...(inside ? {B: inside.other.texture} : {}),
        ...(chained ? {P: chained.texture} : {}),
      },
      tensors: mask ? {Mask: maskView(mask)} : {},
      uniforms: {
        heads: H,
        tokens,
        over: Nk,
        initialTokens,
        chunks: overQueries.chunks,
        slots: states.slots,
        startA: rows.start,
        strideA: rows.stride,
        startB: inside?.other.start ?? 0,
        strideB: inside?.other.stride ?? 0,
        startP: chained?.start ?? 0,
        strideP: chained?.stride ?? 0,
      },
      code: `
${PRODUCTS}
${writer.code}
${chained ? derivativeCode(attrs.featureMap) : ''}
${mask ? MASK : ''}
void main() {
  int bh, t, c;
  locate(bh, t, c);
  int column = c / 2;
  int chunk = t / ${L / 2};
  int row = t - chunk * ${L / 2};
  int unitW = bh * chunks + chunk;
  vec4 sum = vec4(0.);
  vec2 den = ${finish.kind === 'divide' ? `texture(W, atW(unitW, row, ${scores.width - 1})).xz` : 'vec2(0.)'};
  vec2 a0 = atA(bh * strideA + startA + chunk, row, 0);
  vec2 s0 = ${outer === 'NN' ? `atS(${slot}, 0, column)` : `atS(${slot}, column, 0)`};
  ${walk(
    (outer === 'NN' ? R : D) / 2,
    {a: ['a0', 'alongA'], s: ['s0', outer === 'NN' ? 'downS' : 'alongS']},
    `sum += times${outer}(texture(A, a), texture(S, s));`,
  )}
  ${means ? sumsFromMeans(plan) : ''}
  ${insideCode(reading, plan)}
  ${finishCode(reading, plan)}
  ${mask ? 'vec2 keep = readMask(bh, t); if (keep.x == 0.) sum.xy = vec2(0.); if (keep.y == 0.) sum.zw = vec2(0.);' : ''}
  ${width % 2 === 1 ? `if (c + 1 == ${width}) sum.yw = vec2(0.);` : ''}
  setOutput(sum);
}
`,
    },
    writer.shape,
  );
  const shape = attrs.dataFormat === 'BHND' ? [B, H, tokens, width] : [B, tokens, H, width];
  return writer.unfinished
    ? drawHeads(drawing, info, tokens, width, plan)
    : viewed(drawing.keep(info), shape);
}
