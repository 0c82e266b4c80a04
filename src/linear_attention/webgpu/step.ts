/** LinearAttentionStep on tfjs's webgpu backend, in one dispatch: a workgroup to 16 value columns of a head. */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import type {PointwiseMap} from '../../pointwise';
import type {WebGpuBackend} from '../../tfjs';
import {runProgram, type WebGpuProgram} from '../../webgpu/run';
import type {LinearAttentionStepAttrs, LinearAttentionStepInputs} from '../step';
import {phi, reads, writes} from './wgsl';

const COLUMNS = 16;

const DECLARATIONS = `
var<workgroup> qs: array<f32, 64>;
var<workgroup> ks: array<f32, 64>;
var<workgroup> sums: array<vec2<f32>, 64>; // of numerator and denominator`;

const MAIN = `
  let tiles = (uniforms.d + 15) / 16;
  let head = group / tiles;
  let column0 = (group % tiles) * 16;
  let c = column0 + (thread & 15);
  var newValue = 0.0;
  if (c < uniforms.d) { newValue = f32(v[head * uniforms.d + c]); }
  var sum = vec2(0.0);
  for (var f0 = 0; f0 < uniforms.r; f0 += 64) {
    let i = f0 + thread;
    if (i < uniforms.r) {
      let at = head * uniforms.r + i;
      let query = phi(f32(q[at]));
      let key = phi(f32(k[at]));
      let sumOfKeys = f32(z[at]) + key;
      if (column0 == 0) { newZ[at] = sumOfKeys; }
      sum.y += query * sumOfKeys;
      qs[thread] = query;
      ks[thread] = key;
    }
    workgroupBarrier();
    if (c < uniforms.d) {
      for (var y = thread >> 4; y < min(64, uniforms.r - f0); y += 4) {
        let at = (head * uniforms.r + f0 + y) * uniforms.d + c;
        let state = f32(s[at]) + ks[y] * newValue;
        newS[at] = state;
        sum.x += qs[y] * state;
      }
    }
    workgroupBarrier();
  }
  sums[thread] = sum;
  workgroupBarrier();
  if (thread < 16 && c < uniforms.d) {
    let numerator = sums[thread].x + sums[thread + 16].x + sums[thread + 32].x + sums[thread + 48].x;
    var result = uniforms.scale * numerator;
    if (uniforms.normalize != 0) {
      var denominator = 0.0;
      for (var y = 0; y < 64; y++) { denominator += sums[y].y; }
      result = select(numerator / (denominator + uniforms.eps), 0.0, denominator == 0.0);
    }
    output[head * uniforms.d + c] = result;
  }`;

export const stepProgram = (map: PointwiseMap): WebGpuProgram => ({
  key: `step ${map}`,
  buffers: [...reads('q', 'k', 'v', 's', 'z'), ...writes('output', 'newS', 'newZ')],
  uniforms: [
    {name: 'r', type: 'i32'},
    {name: 'd', type: 'i32'},
    {name: 'normalize', type: 'i32'},
    {name: 'eps', type: 'f32'},
    {name: 'scale', type: 'f32'},
  ],
  workgroupSize: 64,
  source: () => ({declarations: `${DECLARATIONS}\n${phi(map)}`, main: MAIN}),
});

/** Output, s and z of step.ts. No size may be 0. */
export function webgpuStep(
  backend: WebGpuBackend,
  inputs: LinearAttentionStepInputs,
  {featureMap, normalize, eps, scale}: LinearAttentionStepAttrs,
): TensorInfo[] {
  const [B, H, r, d] = inputs.s.shape;
  const make = (shape: number[]) => backend.makeTensorInfo(shape, 'float32');
  const output = make([B, H, d]);
  const newS = make([B, H, r, d]);
  const newZ = make([B, H, r]);
  const {q, k, v, s, z} = inputs;
  runProgram(
    backend,
    stepProgram(featureMap),
    {q, k, v, s, z, output, newS, newZ},
    {r, d, normalize: normalize ? 1 : 0, eps, scale},
    B * H * Math.ceil(d / COLUMNS),
  );
  return [output, newS, newZ];
}
