/**
 * The first pass: phi(q), phi(k) and [v, 1] of each head one below the other in one texture, [BH, 2 rows, W], with
 * zeros wherever the mask is 0 and beyond the last token, feature or value. All later passes read it without a test.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import type {Drawing, Pass} from '../../webgl/draw';
import type {LinearAttentionInputs} from '../spec';
import {MASK, maskView, readerOf} from './layout';
import {mapCode} from './maps';
import type {Plan} from './plan';

/** Where a head's rows of one kind begin, in pairs, within `stride` pairs; `width` is the texture's. */
export interface Rows {
  info: TensorInfo;
  start: number;
  stride: number;
  width: number;
}

export function drawRows(drawing: Drawing, inputs: LinearAttentionInputs, plan: Plan): TensorInfo {
  const {B, H, Nq, Nk, r, d, W, queries, keys, rows, attrs} = plan;
  const readers = {
    q: readerOf(drawing.backend, inputs.q, attrs.dataFormat, 'Q'),
    k: readerOf(drawing.backend, inputs.k, attrs.dataFormat, 'K'),
    v: readerOf(drawing.backend, inputs.v, attrs.dataFormat, 'V'),
  };
  const pass: Pass = {
    name: 'attention rows',
    inputs: {
      Q: readers.q.info,
      K: readers.k.info,
      V: readers.v.info,
      ...(attrs.hasMask ? {Mask: maskView(inputs.mask)} : {}),
    },
    shape: [1, B * H, 2 * rows, W],
    uniforms: {heads: H, queries, keys, lengthQ: Nq, lengthK: Nk, lengthV: Nk},
    code: `
${mapCode(attrs.featureMap)}
${readers.q.code}
${readers.k.code}
${readers.v.code}
${attrs.hasMask ? MASK : 'vec2 readMask(int bh, int t) { return vec2(1.); }'}
// x where row and column are within, 0 elsewhere, whatever x holds there.
vec4 within(vec4 x, bvec2 row, bvec2 column) {
  return vec4(
    row.x && column.x ? x.x : 0., row.x && column.y ? x.y : 0.,
    row.y && column.x ? x.z : 0., row.y && column.y ? x.w : 0.);
}
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.y;
  int t = o.z / 2;
  int c = o.w;
  bvec2 feature = lessThan(ivec2(c, c + 1), ivec2(${r}));
  if (t < queries) {
    bvec2 row = lessThan(ivec2(2 * t, 2 * t + 1), ivec2(lengthQ));
    setOutput(row.x && c < ${r} ? within(phi(readQ(bh, t, c)), row, feature) : vec4(0.));
    return;
  }
  bool isKey = t < queries + keys;
  t -= isKey ? queries : queries + keys;
  bvec2 row = lessThan(ivec2(2 * t, 2 * t + 1), ivec2(lengthK));
  if (!row.x) {
    setOutput(vec4(0.));
    return;
  }
  bvec2 kept = notEqual(readMask(bh, t), vec2(0.));
  row = bvec2(kept.x, row.y && kept.y);
  if (isKey) {
    setOutput(c < ${r} ? within(phi(readK(bh, t, c)), row, feature) : vec4(0.));
    return;
  }
  bvec2 value = lessThan(ivec2(c, c + 1), ivec2(${d}));
  bvec2 one = equal(ivec2(c, c + 1), ivec2(${d}));
  vec4 v = c < ${d} ? within(readV(bh, t, c), row, value) : vec4(0.);
  setOutput(v + within(vec4(1.), row, one));
}
`,
  };
  return drawing.draw(pass);
}

/** The parts of the texture. */
export function partsOf(info: TensorInfo, {queries, keys, rows, W}: Plan): {q: Rows; k: Rows; v: Rows} {
  const part = (start: number): Rows => ({info, start, stride: rows, width: W});
  return {q: part(0), k: part(queries), v: part(queries + keys)};
}
