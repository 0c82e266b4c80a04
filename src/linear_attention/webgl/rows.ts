/**
 * The first pass: phi(q), phi(k) and [v, 1] of every head, chunk by chunk, in one texture, with zeros wherever the mask
 * is 0 and beyond the last token, feature or value. All later passes read it without a test.
 */
import type {Drawing} from '../../webgl/draw';
import type {GridTexture} from '../../webgl/grid';
import type {LinearAttentionInputs} from '../spec';
import {MASK, maskView, readerOf} from './layout';
import {mapCode} from './maps';
import type {Plan} from './plan';

/** Rows of one kind: chunk c of head bh is unit bh * stride + start + c. */
export interface Rows {
  texture: GridTexture;
  start: number;
  stride: number;
}

export function drawRows(drawing: Drawing, inputs: LinearAttentionInputs, plan: Plan): GridTexture {
  const {H, Nq, Nk, r, d, L, overQueries, overKeys, rows, attrs} = plan;
  const readers = {
    q: readerOf(drawing.backend, inputs.q, attrs.dataFormat, 'Q'),
    k: readerOf(drawing.backend, inputs.k, attrs.dataFormat, 'K'),
    v: readerOf(drawing.backend, inputs.v, attrs.dataFormat, 'V'),
  };
  return drawing.drawGrid(
    {
      name: 'attention rows',
      tensors: {
        Q: readers.q.info,
        K: readers.k.info,
        V: readers.v.info,
        ...(attrs.hasMask ? {Mask: maskView(inputs.mask)} : {}),
      },
      uniforms: {
        heads: H,
        queries: overQueries.chunks,
        keys: overKeys.chunks,
        lengthQ: Nq,
        lengthK: Nk,
        lengthV: Nk,
      },
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
  int unit, row, column;
  if (!locate(unit, row, column)) { setOutput(vec4(0.)); return; }
  int stride = queries + 2 * keys;
  int bh = unit / stride;
  int chunk = unit - bh * stride;
  bool isQuery = chunk < queries;
  bool isKey = !isQuery && chunk < queries + keys;
  chunk -= isQuery ? 0 : isKey ? queries : queries + keys;
  int t = chunk * ${L / 2} + row;
  int c = 2 * column;
  bvec2 inRow = lessThan(ivec2(2 * t, 2 * t + 1), ivec2(isQuery ? lengthQ : lengthK));
  if (!inRow.x) { setOutput(vec4(0.)); return; }
  if (!isQuery) {
    bvec2 kept = notEqual(readMask(bh, t), vec2(0.));
    inRow = bvec2(kept.x, inRow.y && kept.y);
  }
  if (isQuery || isKey) {
    bvec2 feature = lessThan(ivec2(c, c + 1), ivec2(${r}));
    if (!feature.x) { setOutput(vec4(0.)); return; }
    vec4 x = isQuery ? readQ(bh, t, c) : readK(bh, t, c);
    setOutput(within(phi(x), inRow, feature));
    return;
  }
  bvec2 value = lessThan(ivec2(c, c + 1), ivec2(${d}));
  bvec2 one = equal(ivec2(c, c + 1), ivec2(${d}));
  vec4 v = value.x ? within(readV(bh, t, c), inRow, value) : vec4(0.);
  setOutput(v + within(vec4(1.), inRow, one));
}
`,
    },
    rows,
  );
}

/** The parts of the texture. */
export function partsOf(texture: GridTexture, {overQueries, overKeys}: Plan): {q: Rows; k: Rows; v: Rows} {
  const [queries, keys] = [overQueries.chunks, overKeys.chunks];
  const part = (start: number): Rows => ({texture, start, stride: queries + 2 * keys});
  return {q: part(0), k: part(queries), v: part(queries + keys)};
}
