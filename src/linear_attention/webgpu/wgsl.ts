/**
 * What the WGSL programs of linear attention share: uniforms, feature maps, and where rows lie.
 *
 * Letters as in spec.ts. A head is bh = b H + h. Scratch (buffer `scratch`) holds, from the offsets in the uniforms:
 *
 *     sumsAt       [BH, segments, r, d + 1]: sums S~ = [S, z] of phi(k) [v, 1]^T per segment, then (scanned) what each
 *                  segment starts from; not causal: the total, in place of the first segment
 *     gradientAt   the same of phi(q) dN~^T, which is the gradient of the state after each segment
 *     copyAt       for programs that update sums in place: backward, another copy of the gradient's; forward, a z of
 *                  each workgroup's own, [workgroups, r]
 *     rowsAt       [BH, Nq, d + 1]: dN~ = [dN, e], the gradient of numerator and denominator
 *     maskAt       [B, Nk]
 */
import type {PointwiseMap} from '../../pointwise';
import type {WebGpuProgram} from '../../webgpu/run';

const INTEGERS = [
  'B',
  'H',
  'Nq',
  'Nk',
  'r',
  'd',
  'bnhd',
  'causal',
  'normalize',
  'hasMask',
  'hasState',
  'returnState',
  'hasSums',
  'segments',
  'segmentLength',
  'sumsAt',
  'gradientAt',
  'copyAt',
  'rowsAt',
  'maskAt',
] as const;

export type CallUniforms = Record<(typeof INTEGERS)[number] | 'eps' | 'scale', number>;

export const CALL_UNIFORMS: WebGpuProgram['uniforms'] = [
  ...INTEGERS.map((name) => ({name, type: 'i32' as const})),
  {name: 'eps', type: 'f32'},
  {name: 'scale', type: 'f32'},
];

export const reads = (...names: string[]): WebGpuProgram['buffers'] =>
  names.map((name) => ({name, write: false}));
export const writes = (...names: string[]): WebGpuProgram['buffers'] =>
  names.map((name) => ({name, write: true}));

/**
 * Rows of the head bh: token n's row in q (and output) and in k (and v), in the call's data format. Times the width it
 * is an index. Set once per workgroup, because divisions are slow.
 */
export const HEAD = `
var<private> head: i32;
var<private> queryBase: i32;
var<private> keyBase: i32;
var<private> rowStride: i32;
var<private> maskBase: i32;
fn setHead(bh: i32) {
  let b = bh / uniforms.H;
  let h = bh - b * uniforms.H;
  let bnhd = uniforms.bnhd != 0;
  head = bh;
  rowStride = select(1, uniforms.H, bnhd);
  queryBase = select(bh * uniforms.Nq, b * uniforms.Nq * uniforms.H + h, bnhd);
  keyBase = select(bh * uniforms.Nk, b * uniforms.Nk * uniforms.H + h, bnhd);
  maskBase = uniforms.maskAt + b * uniforms.Nk;
}
fn queryRow(n: i32) -> i32 { return queryBase + n * rowStride; }
fn keyRow(n: i32) -> i32 { return keyBase + n * rowStride; }`;

/** phi(x) and phi'(x). Comparisons are such that NaN gives NaN: max(x, 0) of a device may lose it. */
const MAPS: {[map in PointwiseMap]: [phi: string, derivative: string]} = {
  identity: ['x', '1.0'],
  elu: ['select(exp(x), x + 1.0, x > 0.0)', 'select(exp(x), 1.0, x > 0.0)'],
  relu: ['select(x, 0.0, x <= 0.0)', 'select(0.0, 1.0, x > 0.0)'],
  squaredRelu: ['select(x * x, 0.0, x <= 0.0)', 'select(0.0, 2.0 * x, x > 0.0)'],
  exp: ['exp(x)', 'exp(x)'],
};

export const phi = (map: PointwiseMap): string => `fn phi(x: f32) -> f32 { return ${MAPS[map][0]}; }`;
export const phiDerivative = (map: PointwiseMap): string =>
  `fn phiDerivative(x: f32) -> f32 { return ${MAPS[map][1]}; }`;

/** Whether the mask, which lies in `buffer`, keeps token n. */
export const kept = (buffer: string): string => `
fn kept(n: i32) -> bool {
  if (uniforms.hasMask == 0) { return true; }
  return f32(${buffer}[maskBase + n]) != 0.0;
}`;

/** phi(q), phi(k) and [v, 1] at token n: 0 outside their widths and, on the key side, where the mask drops n. */
export const QUERY = `
fn queryFeature(n: i32, i: i32) -> f32 {
  if (i >= uniforms.r) { return 0.0; }
  return phi(f32(q[queryRow(n) * uniforms.r + i]));
}`;
export const KEY = `
fn keyFeature(n: i32, i: i32) -> f32 {
  if (i >= uniforms.r || !kept(n)) { return 0.0; }
  return phi(f32(k[keyRow(n) * uniforms.r + i]));
}`;
export const VALUE = `
fn value(n: i32, c: i32) -> f32 {
  if (c > uniforms.d || !kept(n)) { return 0.0; }
  if (c == uniforms.d) { return 1.0; }
  return f32(v[keyRow(n) * uniforms.d + c]);
}`;
/** dN~ of token n's query. */
export const ROW_GRADIENT = `
fn rowGradient(n: i32, c: i32) -> f32 {
  if (c > uniforms.d) { return 0.0; }
  return f32(scratch[uniforms.rowsAt + (head * uniforms.Nq + n) * (uniforms.d + 1) + c]);
}`;
