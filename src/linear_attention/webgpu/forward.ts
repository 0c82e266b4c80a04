/**
 * LinearAttention on tfjs's webgpu backend: one dispatch where whole sequences are walked, else sums over segments, their
 * scan, and a walk along each segment.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import type {PointwiseMap} from '../../pointwise';
import {disposeInfo, type WebGpuBackend} from '../../tfjs';
import {runProgram, type WebGpuProgram} from '../../webgpu/run';
import {dimsOf, type LinearAttentionAttrs, type LinearAttentionInputs} from '../spec';
import {segmentsOf} from './plan';
import {scanProgram} from './scan';
import {sumGroups, sumsProgram} from './sums';
import {callUniforms} from './uniforms';
import {COLUMNS, capacityFor, WALK_WORKGROUP, walkSource} from './walk';
import {CALL_UNIFORMS, HEAD, KEY, kept, phi, QUERY, reads, VALUE, writes} from './wgsl';

const FUNCTIONS = `
fn operandA(n: i32, i: i32) -> f32 { return queryFeature(n, i); }
fn operandB(n: i32, i: i32) -> f32 { return keyFeature(n, i); }
fn operandC(n: i32, c: i32) -> f32 {
  if (c >= uniforms.d) { return 0.0; }
  return value(n, c);
}
fn stateIndex(slot: i32, i: i32, c: i32) -> i32 {
  if (uniforms.sumsAt < 0 || i >= uniforms.r || c > uniforms.d) { return -1; }
  return uniforms.sumsAt + ((head * uniforms.segments + slot) * uniforms.r + i) * (uniforms.d + 1) + c;
}
fn store(n: i32, c: i32, value: f32, denominator: f32) {
  if (c >= uniforms.d) { return; }
  let at = queryRow(n);
  if (uniforms.normalize == 0) {
    output[at * uniforms.d + c] = uniforms.scale * value;
    return;
  }
  let factor = select(1.0 / (denominator + uniforms.eps), 0.0, denominator == 0.0);
  output[at * uniforms.d + c] = select(value * factor, 0.0, denominator == 0.0);
  if (c == 0) { inverse[at] = factor; }
}
fn storeState(i: i32, c: i32, value: f32) {
  if (i < uniforms.r && c < uniforms.d) { s[(head * uniforms.r + i) * uniforms.d + c] = value; }
}
fn storeNormalizer(i: i32, value: f32) { z[head * uniforms.r + i] = value; }`;

const SETUP = `
  let tiles = (uniforms.d + 15) / 16;
  let column0 = (group % tiles) * 16;
  let segment = (group / tiles) % uniforms.segments;
  setHead(group / (tiles * uniforms.segments));
  let m = uniforms.r;
  let length = uniforms.Nq;
  let reverse = false;`;

export function walkProgram(map: PointwiseMap, capacity: number): WebGpuProgram {
  const scratch = capacity > 0 ? reads('scratch') : writes('scratch');
  return {
    key: `walk forward ${map} ${capacity}`,
    buffers: [...reads('q', 'k', 'v'), ...scratch, ...writes('output', 'inverse', 's', 'z')],
    uniforms: CALL_UNIFORMS,
    workgroupSize: WALK_WORKGROUP,
    source: () =>
      walkSource({
        capacity,
        normalizer: true,
        setup: SETUP,
        functions: [HEAD, phi(map), kept('scratch'), QUERY, KEY, VALUE, FUNCTIONS].join('\n'),
      }),
  };
}

/** Output, s, z and inverse of spec.ts. No size may be 0. */
export function webgpuForward(
  backend: WebGpuBackend,
  inputs: LinearAttentionInputs,
  attrs: LinearAttentionAttrs,
): TensorInfo[] {
  const dims = dimsOf(inputs, attrs.dataFormat);
  const {B, H, Nk, r, d} = dims;
  const heads = B * H;
  const capacity = capacityFor(r, false);
  const walkers = heads * Math.ceil(d / COLUMNS);
  const sums = heads * r * (d + 1);
  const maskFloats = attrs.hasMask ? B * Nk : 0;
  const copies = capacity > 0 ? 0 : walkers * r;
  const segments = segmentsOf(backend, dims, walkers, sums + copies, maskFloats);

  const rows = inputs.q.shape.slice(0, 3);
  const make = (shape: number[]) => backend.makeTensorInfo(shape, 'float32');
  const output = make([...rows, d]);
  const placeholder = () => backend.makeTensorInfo([1], 'float32', Float32Array.of(0));
  const returnState = attrs.returnState !== false;
  const s = returnState ? make([B, H, r, d]) : placeholder();
  const z = returnState ? make([B, H, r]) : placeholder();
  const inverse = attrs.normalize ? make(rows) : placeholder();

  const hasSums = segments.count > 1 || !attrs.causal;
  const scanned = hasSums || attrs.hasState || capacity === 0;
  const offsets = scanned
    ? {sumsAt: 0, maskAt: segments.count * sums, copyAt: segments.count * sums + maskFloats}
    : {sumsAt: -1, maskAt: 0};
  const {q, k, v, mask} = inputs;
  const map = attrs.featureMap;
  const uniforms = callUniforms(dims, attrs, segments, {hasSums: hasSums ? 1 : 0, ...offsets});
  const groups = walkers * segments.count;
  const walk = (scratch: TensorInfo) =>
    runProgram(
      backend,
      walkProgram(map, capacity),
      {q, k, v, scratch, output, inverse, s, z},
      uniforms,
      groups,
    );
  if (!scanned) {
    walk(mask);
    return [output, s, z, inverse];
  }
  const scratch = make([segments.count * (sums + copies) + maskFloats]);
  if (hasSums) {
    const outside = {...uniforms, maskAt: 0};
    const tiles = sumGroups(heads, segments.count, r, d);
    runProgram(backend, sumsProgram(map, false), {k, v, mask, scratch}, outside, tiles);
  }
  runProgram(
    backend,
    scanProgram(false),
    {initialS: inputs.s, initialZ: inputs.z, mask, scratch, s, z},
    uniforms,
    Math.ceil((sums + maskFloats) / 64),
  );
  walk(scratch);
  disposeInfo(backend, scratch);
  return [output, s, z, inverse];
}
