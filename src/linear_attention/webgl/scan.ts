/**
 * The state at the edges of chunks, one [R, D] for each slot of a head, from what each chunk adds.
 *
 * Forward, slot c is the state before chunk c, and slot `chunks` the one after the last. In reverse, slot c is the
 * gradient of the state after chunk c, and slot `chunks` of the one before the first. Many chunks are summed by groups
 * in a pass before. Where half floats store it, a state is the mean over the tokens that it sums (and the initial state
 * as one more, or as many as it is the mean of): the reader multiplies by their number.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {type Drawing, viewed} from '../../webgl/draw';
import type {GridTexture} from '../../webgl/grid';
import {type Chunks, type Plan, statesGrid} from './plan';

export interface States {
  texture: GridTexture;
  slots: number;
}

export interface ScanOptions {
  reverse?: boolean;
  /** What is added to every slot. */
  initial?: {s: TensorInfo; z: TensorInfo};
  /** Only the slot of the whole. */
  onlyTotal?: boolean;
}

/** The sum over entries [from, to) of a head, each of which covers `span` tokens. */
const add = (sampler: string, {means}: Plan): string => `
vec4 add${sampler}(int bh, int from, int to, int count, int span, int row, int column) {
  vec4 sum = vec4(0.);
  for (int c = from; c < to; c++) {
    vec4 x = texture(${sampler}, at${sampler}(bh * count + c, row, column));
    sum += ${means ? 'x * float(min(span, tokens - c * span))' : 'x'};
  }
  return sum;
}
`;

function drawGroups(drawing: Drawing, local: GridTexture, over: Chunks, plan: Plan): GridTexture {
  const {tokens, chunks, group, groups} = over;
  const {L, means} = plan;
  return drawing.drawGrid(
    {
      name: 'attention state groups',
      grids: {C: local},
      uniforms: {tokens, chunks, group, groups},
      code: `
${add('C', plan)}
void main() {
  int unit, row, column;
  if (!locate(unit, row, column)) { setOutput(vec4(0.)); return; }
  int bh = unit / groups;
  int first = (unit - bh * groups) * group;
  int last = min(first + group, chunks);
  vec4 sum = addC(bh, first, last, chunks, ${L}, row, column);
  ${means ? `sum /= float(min(last * ${L}, tokens) - first * ${L});` : ''}
  setOutput(sum);
}
`,
    },
    statesGrid(plan, groups),
  );
}

/** Declares `vec4 initial(int bh, int i, int j)`: the block of [s, z] as it lies in a state. */
const initialCode = ({r, d}: Plan): string => `
vec4 initial(int bh, int i, int j) {
  bvec2 value = lessThan(ivec2(j, j + 1), ivec2(${d}));
  bvec2 one = equal(ivec2(j, j + 1), ivec2(${d}));
  bool below = i + 1 < ${r};
  vec4 s = value.x ? getS(0, bh, i, j) : vec4(0.);
  s = vec4(value.x ? s.x : 0., value.y ? s.y : 0., below && value.x ? s.z : 0., below && value.y ? s.w : 0.);
  if (one.x || one.y) {
    int b = bh / heads;
    int h = bh - b * heads;
    vec4 block = getZ(0, b, h, i);
    vec2 z = imod(h, 2) == 0 ? block.xy : block.zw;
    z.y = below ? z.y : 0.;
    s += one.x ? vec4(z.x, 0., z.y, 0.) : vec4(0., z.x, 0., z.y);
  }
  return s;
}
`;

export function drawScan(
  drawing: Drawing,
  local: GridTexture,
  over: Chunks,
  plan: Plan,
  options: ScanOptions,
): States {
  const {B, H, r, d, L, means, initialTokens} = plan;
  const {tokens, chunks, group, groups} = over;
  const {reverse = false, initial, onlyTotal = false} = options;
  const first = onlyTotal ? chunks : 0;
  const slots = chunks + 1 - first;
  const grouped = group > 0 ? drawGroups(drawing, local, over, plan) : null;
  // Chunks [from, to): whole groups of them through their sums.
  const sum = grouped
    ? `
  int g0 = (from + group - 1) / group;
  int g1 = to == chunks ? groups : to / group;
  int edge0 = min(g0 * group, to);
  int edge1 = max(min(g1 * group, to), edge0);
  sum += addC(bh, from, edge0, chunks, ${L}, row, column);
  sum += addG(bh, g0, g1, groups, group * ${L}, row, column);
  sum += addC(bh, edge1, to, chunks, ${L}, row, column);`
    : `sum += addC(bh, from, to, chunks, ${L}, row, column);`;
  const texture = drawing.drawGrid(
    {
      name: 'attention state scan',
      grids: {C: local, ...(grouped ? {G: grouped} : {})},
      tensors: initial ? {S: viewed(initial.s, [1, B * H, r, d]), Z: viewed(initial.z, [1, B, H, r])} : {},
      uniforms: {heads: H, tokens, chunks, group, groups, first, slots, initialTokens},
      code: `
${add('C', plan)}${grouped ? add('G', plan) : ''}${initial ? initialCode(plan) : ''}
void main() {
  int unit, row, column;
  if (!locate(unit, row, column)) { setOutput(vec4(0.)); return; }
  int bh = unit / slots;
  int slot = first + unit - bh * slots;
  int from = ${reverse ? 'slot < chunks ? slot + 1 : 0' : '0'};
  int to = ${reverse ? 'chunks' : 'slot'};
  vec4 sum = ${initial ? 'initial(bh, 2 * row, 2 * column)' : 'vec4(0.)'};
  ${initial && means ? 'sum *= float(initialTokens);' : ''}
  ${sum}
  ${means ? `sum /= float(max(1, min(slot * ${L}, tokens) + initialTokens));` : ''}
  setOutput(sum);
}
`,
    },
    statesGrid(plan, slots),
  );
  return {texture, slots};
}
