/**
 * LinearAttentionGrad on tfjs's webgpu backend, in at most 4 dispatches: row gradients, sums over segments, their scan,
 * and one walk whose workgroups are divided among
 *
 *     dphi(Q) = f(dN~, V~, K; S~^T)      dphi(K) = f_rev(V~, dN~, Q; G~^T)      dV = f_rev(K, Q, dN; G)
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import type {PointwiseMap} from '../../pointwise';
import {disposeInfo, type WebGpuBackend} from '../../tfjs';
import {runProgram, type WebGpuProgram} from '../../webgpu/run';
import {dimsOf, type LinearAttentionAttrs, type LinearAttentionGradInputs} from '../spec';
import {segmentsOf} from './plan';
import {ROWS_PER_WORKGROUP, rowGradientsProgram} from './row_gradients';
import {scanProgram} from './scan';
import {sumGroups, sumsProgram} from './sums';
import {callUniforms} from './uniforms';
import {COLUMNS, capacityFor, WALK_WORKGROUP, walkSource} from './walk';
import {
  CALL_UNIFORMS,
  HEAD,
  KEY,
  kept,
  phi,
  phiDerivative,
  QUERY,
  ROW_GRADIENT,
  reads,
  VALUE,
  writes,
} from './wgsl';

/** job: 0 dq, 1 dk, 2 dv. */
const FUNCTIONS = `
var<private> job: i32;
fn operandA(n: i32, i: i32) -> f32 {
  if (job == 0) { return rowGradient(n, i); }
  if (job == 1) { return value(n, i); }
  return keyFeature(n, i);
}
fn operandB(n: i32, i: i32) -> f32 {
  if (job == 0) { return value(n, i); }
  if (job == 1) { return rowGradient(n, i); }
  return queryFeature(n, i);
}
fn operandC(n: i32, c: i32) -> f32 {
  if (job == 0) { return keyFeature(n, c); }
  if (job == 1) { return queryFeature(n, c); }
  if (c >= uniforms.d) { return 0.0; }
  return rowGradient(n, c);
}
fn stateIndex(slot: i32, i: i32, c: i32) -> i32 {
  let matrix = (head * uniforms.segments + slot) * uniforms.r;
  let width = uniforms.d + 1;
  if (job == 2) {
    if (i >= uniforms.r || c >= uniforms.d) { return -1; }
    return uniforms.copyAt + (matrix + i) * width + c;
  }
  if (c >= uniforms.r || i >= width) { return -1; }
  return select(uniforms.gradientAt, uniforms.sumsAt, job == 0) + (matrix + c) * width + i;
}
fn store(n: i32, c: i32, value: f32, denominator: f32) {
  if (job == 0) {
    if (c < uniforms.r) {
      let at = queryRow(n) * uniforms.r + c;
      dq[at] = value * phiDerivative(f32(q[at]));
    }
  } else if (job == 1) {
    if (c < uniforms.r) {
      let at = keyRow(n) * uniforms.r + c;
      dk[at] = select(0.0, value * phiDerivative(f32(k[at])), kept(n));
    }
  } else if (c < uniforms.d) {
    dv[keyRow(n) * uniforms.d + c] = select(0.0, value, kept(n));
  }
}`;

const SETUP = `
  let featureTiles = (uniforms.r + 15) / 16;
  let tiles = 2 * featureTiles + (uniforms.d + 15) / 16;
  let tile = group % tiles;
  let segment = (group / tiles) % uniforms.segments;
  setHead(group / (tiles * uniforms.segments));
  let ofQueries = tile < featureTiles;
  let ofValues = tile >= 2 * featureTiles;
  job = select(select(1, 2, ofValues), 0, ofQueries);
  let column0 = 16 * (tile - select(select(featureTiles, 2 * featureTiles, ofValues), 0, ofQueries));
  let m = select(uniforms.d + 1, uniforms.r, ofValues);
  let length = select(uniforms.Nk, uniforms.Nq, ofQueries);
  let reverse = !ofQueries;`;

export function walkProgram(map: PointwiseMap, capacity: number): WebGpuProgram {
  const scratch = capacity > 0 ? reads('scratch') : writes('scratch');
  return {
    key: `walk backward ${map} ${capacity}`,
    buffers: [...reads('q', 'k', 'v'), ...scratch, ...writes('dq', 'dk', 'dv')],
    uniforms: CALL_UNIFORMS,
    workgroupSize: WALK_WORKGROUP,
    source: () =>
      walkSource({
        capacity,
        normalizer: false,
        setup: SETUP,
        functions: [
          HEAD,
          phi(map),
          phiDerivative(map),
          kept('scratch'),
          QUERY,
          KEY,
          VALUE,
          ROW_GRADIENT,
          FUNCTIONS,
        ].join('\n'),
      }),
  };
}

/** dq, dk, dv, ds and dz of spec.ts. No size may be 0. */
export function webgpuBackward(
  backend: WebGpuBackend,
  inputs: LinearAttentionGradInputs,
  attrs: LinearAttentionAttrs,
): TensorInfo[] {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const {B, H, Nq, Nk, r, d} = dims;
  const heads = B * H;
  const capacity = capacityFor(Math.max(r, d + 1), true);
  const walkers = heads * (2 * Math.ceil(r / COLUMNS) + Math.ceil(d / COLUMNS));
  const sums = heads * r * (d + 1);
  const rowFloats = heads * Nq * (d + 1);
  const maskFloats = attrs.hasMask ? B * Nk : 0;
  const regions = capacity > 0 ? 2 : 3;
  const segments = segmentsOf(backend, dims, walkers, regions * sums, rowFloats + maskFloats);

  const make = (shape: number[]) => backend.makeTensorInfo(shape, 'float32');
  const dq = make(inputs.q.shape);
  const dk = make(inputs.k.shape);
  const dv = make(inputs.v.shape);
  const zero = () => backend.makeTensorInfo([1], 'float32', Float32Array.of(0));
  const ds = attrs.hasState ? make(inputs.s.shape) : zero();
  const dz = attrs.hasState ? make(inputs.z.shape) : zero();

  const region = segments.count * sums;
  const scratch = make([rowFloats + regions * region + maskFloats]);
  const hasSums = segments.count > 1 || !attrs.causal || attrs.hasState;
  const uniforms = callUniforms(dims, attrs, segments, {
    hasSums: hasSums ? 1 : 0,
    rowsAt: 0,
    sumsAt: rowFloats,
    gradientAt: rowFloats + region,
    copyAt: rowFloats + (regions - 1) * region,
    maskAt: rowFloats + regions * region,
  });
  const {q, k, v, mask, s: initialS, z: initialZ, output, inverse, dOutput, dS, dZ} = inputs;
  const map = attrs.featureMap;
  runProgram(
    backend,
    rowGradientsProgram(),
    {output, inverse, dOutput, scratch},
    uniforms,
    Math.ceil((heads * Nq) / ROWS_PER_WORKGROUP),
  );
  if (hasSums) {
    const outside = {...uniforms, maskAt: 0};
    const tiles = 2 * sumGroups(heads, segments.count, r, d);
    runProgram(backend, sumsProgram(map, true), {q, k, v, mask, scratch}, outside, tiles);
  }
  runProgram(
    backend,
    scanProgram(true),
    {initialS, initialZ, mask, dS, dZ, scratch, ds, dz},
    uniforms,
    Math.ceil((2 * sums + maskFloats) / 64),
  );
  runProgram(
    backend,
    walkProgram(map, capacity),
    {q, k, v, scratch, dq, dk, dv},
    uniforms,
    walkers * segments.count,
  );
  disposeInfo(backend, scratch);
  return [dq, dk, dv, ds, dz];
}
