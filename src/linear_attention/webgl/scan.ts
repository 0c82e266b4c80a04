/**
 * The state at the edges of chunks, [BH slots, R, D], from what each chunk adds.
 *
 * Forward, slot c is the state before chunk c, and slot `chunks` the one after the last. In reverse, slot c is the
 * gradient of the state after chunk c, and slot `chunks` of the one before the first. Many chunks are summed by groups
 * in a pass before. Where half floats store it, a state is the mean over the tokens that it sums (and the initial state
 * as one more): the reader multiplies by their number.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {asPairs, type Drawing, viewed} from '../../webgl/draw';
import {WALK, widthOf} from '../../webgl/glsl';
import type {Chunks, Plan} from './plan';

export interface States {
  info: TensorInfo;
  /** The first slot that the texture holds, and how many. */
  first: number;
  slots: number;
}

export interface ScanOptions {
  reverse?: boolean;
  /** What is added to every slot. */
  initial?: {s: TensorInfo; z: TensorInfo};
  /** Only the slot of the whole. */
  onlyTotal?: boolean;
}

const size = ({R, D}: Plan): number => (R * D) / 4;

/** Adds texels of \`T\`, \`texels\` apart, of entries [from, to) of a head; \`span\` tokens are in each of them. */
const ADD = (sampler: string, plan: Plan) => `
vec4 add${sampler}(int bh, int from, int to, int count, int span, int offset) {
  int width = ${widthOf(sampler)};
  vec4 sum = vec4(0.);
  for (int c = from; c < to; c++) {
    vec4 x = texelFetch(${sampler}, place((bh * count + c) * ${size(plan)} + offset, width), 0);
    sum += ${plan.means ? 'x * float(min(span, tokens - c * span))' : 'x'};
  }
  return sum;
}
`;

function drawGroups(drawing: Drawing, local: TensorInfo, over: Chunks, plan: Plan): TensorInfo {
  const {B, H, R, D, L} = plan;
  const {tokens, chunks, group, groups} = over;
  return drawing.draw({
    name: 'attention state groups',
    inputs: {C: local},
    shape: [1, B * H * groups, R, D],
    uniforms: {tokens, chunks, group, groups},
    code: `
${WALK}${ADD('C', plan)}
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.y / groups;
  int first = (o.y - bh * groups) * group;
  int last = min(first + group, chunks);
  vec4 sum = addC(bh, first, last, chunks, ${L}, (o.z / 2) * ${D / 2} + o.w / 2);
  ${plan.means ? `sum /= float(min(last * ${L}, tokens) - first * ${L});` : ''}
  setOutput(sum);
}
`,
  });
}

/** Declares \`vec4 initial(int bh, int i, int j)\`: the block of [s, z] as it lies in a state. */
const INITIAL = ({r, d}: Plan) => `
vec4 initial(int bh, int i, int j) {
  vec4 s = i < ${r} && j < ${d} ? getS(0, bh, i, j) : vec4(0.);
  bool below = i + 1 < ${r};
  bvec2 value = lessThan(ivec2(j, j + 1), ivec2(${d}));
  s = vec4(
    value.x ? s.x : 0., value.y ? s.y : 0., below && value.x ? s.z : 0., below && value.y ? s.w : 0.);
  bvec2 one = equal(ivec2(j, j + 1), ivec2(${d}));
  if (i < ${r} && (one.x || one.y)) {
    int b = bh / heads;
    vec4 zs = getZ(0, b, bh - b * heads, i);
    vec2 z = imod(bh - b * heads, 2) == 0 ? zs.xy : zs.zw;
    z.y = below ? z.y : 0.;
    s += one.x ? vec4(z.x, 0., z.y, 0.) : vec4(0., z.x, 0., z.y);
  }
  return s;
}
`;

export function drawScan(
  drawing: Drawing,
  local: TensorInfo,
  over: Chunks,
  plan: Plan,
  options: ScanOptions,
): States {
  const {B, H, R, D, r, d, L, means} = plan;
  const {tokens, chunks, group, groups} = over;
  const {reverse = false, initial, onlyTotal = false} = options;
  const first = onlyTotal ? chunks : 0;
  const slots = chunks + 1 - first;
  const chunkStates = asPairs(local, D, (B * H * chunks * R) / 2);
  const grouped = group > 0;
  const groupStates = grouped ? drawGroups(drawing, chunkStates, over, plan) : null;
  const inputs = {
    C: chunkStates,
    ...(groupStates ? {G: asPairs(groupStates, D, (B * H * groups * R) / 2)} : {}),
    ...(initial ? {S: viewed(initial.s, [1, B * H, r, d]), Z: viewed(initial.z, [1, B, H, r])} : {}),
  };
  // Chunks [from, to): whole groups of them through their sums.
  const sum = grouped
    ? `
  int g0 = (from + group - 1) / group;
  int g1 = to == chunks ? groups : to / group;
  int edge0 = min(g0 * group, to);
  int edge1 = max(min(g1 * group, to), edge0);
  sum += addC(bh, from, edge0, chunks, ${L}, offset);
  sum += addG(bh, g0, g1, groups, group * ${L}, offset);
  sum += addC(bh, edge1, to, chunks, ${L}, offset);`
    : `sum += addC(bh, from, to, chunks, ${L}, offset);`;
  const info = drawing.draw({
    name: 'attention state scan',
    inputs,
    shape: [1, B * H * slots, R, D],
    uniforms: {heads: H, tokens, chunks, group, groups, first, slots},
    code: `
${WALK}${ADD('C', plan)}${grouped ? ADD('G', plan) : ''}${initial ? INITIAL(plan) : ''}
void main() {
  ivec4 o = getOutputCoords();
  int bh = o.y / slots;
  int slot = first + o.y - bh * slots;
  int offset = (o.z / 2) * ${D / 2} + o.w / 2;
  int from = ${reverse ? 'slot < chunks ? slot + 1 : 0' : '0'};
  int to = ${reverse ? 'chunks' : 'slot'};
  vec4 sum = ${initial ? 'initial(bh, o.z, o.w)' : 'vec4(0.)'};
  ${sum}
  ${means ? `sum /= float(max(1, min(slot * ${L}, tokens) + ${initial ? 1 : 0}));` : ''}
  setOutput(sum);
}
`,
  });
  return {info, first, slots};
}
