/**
 * dN~ = [dN, e] of each query from the output's gradient: dN = dY / (den + eps), e = -(dY.y) / (den + eps), both 0 where
 * the denominator is 0; not normalised dN = scale dY, e = 0. 16 invocations to a row.
 */
import type {WebGpuProgram} from '../../webgpu/run';
import {CALL_UNIFORMS, HEAD, reads, writes} from './wgsl';

export const ROWS_PER_WORKGROUP = 4;

const MAIN = `
  let index = group * 4 + (thread >> 4);
  let lane = thread & 15;
  let inside = index < uniforms.B * uniforms.H * uniforms.Nq;
  var factor = uniforms.scale;
  var sum = 0.0;
  if (inside) {
    setHead(index / uniforms.Nq);
    let at = queryRow(index % uniforms.Nq);
    if (uniforms.normalize != 0) { factor = f32(inverse[at]); }
    for (var c = lane; c < uniforms.d; c += 16) {
      let dy = f32(dOutput[at * uniforms.d + c]);
      scratch[uniforms.rowsAt + index * (uniforms.d + 1) + c] = select(dy * factor, 0.0, factor == 0.0);
      sum += dy * f32(output[at * uniforms.d + c]);
    }
  }
  sums[thread] = sum;
  workgroupBarrier();
  if (inside && lane == 0) {
    for (var x = 1; x < 16; x++) { sum += sums[thread + x]; }
    let e = select(-sum * factor, 0.0, factor == 0.0 || uniforms.normalize == 0);
    scratch[uniforms.rowsAt + index * (uniforms.d + 1) + uniforms.d] = e;
  }`;

export const rowGradientsProgram = (): WebGpuProgram => ({
  key: 'row gradients',
  buffers: [...reads('output', 'inverse', 'dOutput'), ...writes('scratch')],
  uniforms: CALL_UNIFORMS,
  workgroupSize: 64,
  source: () => ({declarations: `var<workgroup> sums: array<f32, 64>;\n${HEAD}`, main: MAIN}),
});
