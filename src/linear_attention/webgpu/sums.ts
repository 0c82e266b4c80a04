/** Sums over each segment, in tiles: S~ += phi(k) [v, 1]^T and, in backward, G~ += phi(q) dN~^T. */
import type {PointwiseMap} from '../../pointwise';
import type {WebGpuProgram} from '../../webgpu/run';
import {CALL_UNIFORMS, HEAD, KEY, kept, phi, QUERY, ROW_GRADIENT, reads, VALUE, writes} from './wgsl';

/** Features and columns in a workgroup's tile: 8 x 8 invocations of 4 x 4. */
export const TILE = 32;

const main = (backward: boolean): string => `
  let columnTiles = (uniforms.d + 31) / 32;
  let featureTiles = (uniforms.r + 31) / 32;
  let column0 = (group % columnTiles) * 32;
  let feature0 = ((group / columnTiles) % featureTiles) * 32;
  let rest = group / (columnTiles * featureTiles);
  let segment = rest % uniforms.segments;
  let heads = uniforms.B * uniforms.H;
  let ofKeys = rest / uniforms.segments < heads;
  setHead((rest / uniforms.segments) % heads);
  let start = segment * uniforms.segmentLength;
  let end = min(start + uniforms.segmentLength, ${backward ? 'select(uniforms.Nq, uniforms.Nk, ofKeys)' : 'uniforms.Nk'});
  let tx = thread & 7;
  let ty = thread >> 3;
  var acc0 = vec4(0.0); var acc1 = vec4(0.0); var acc2 = vec4(0.0); var acc3 = vec4(0.0);
  var z = vec4(0.0);
  for (var x0 = start; x0 < end; x0 += 32) {
    for (var e = thread; e < 256; e += 64) {
      let n = x0 + (e >> 3);
      var b = vec4(0.0);
      var c = vec4(0.0);
      if (n < end) {
        for (var x = 0; x < 4; x++) {
          let i = feature0 + 4 * (e & 7) + x;
          let j = column0 + 4 * (e & 7) + x;
          ${
            backward
              ? `if (ofKeys) {
            b[x] = keyFeature(n, i);
            c[x] = value(n, j);
          } else {
            b[x] = queryFeature(n, i);
            c[x] = rowGradient(n, j);
          }`
              : 'b[x] = keyFeature(n, i);\n          c[x] = value(n, j);'
          }
        }
      }
      bs[e] = b;
      cs[e] = c;
    }
    if (thread < 32) {
      let n = x0 + thread;
      var one = 0.0;
      if (n < end) {
        ${backward ? 'if (ofKeys) { one = value(n, uniforms.d); } else { one = rowGradient(n, uniforms.d); }' : 'one = value(n, uniforms.d);'}
      }
      ones[thread] = one;
    }
    workgroupBarrier();
    for (var y = 0; y < 32; y++) {
      let b = bs[y * 8 + ty];
      let c = cs[y * 8 + tx];
      acc0 += b.x * c;
      acc1 += b.y * c;
      acc2 += b.z * c;
      acc3 += b.w * c;
      if (tx == 0) { z += b * ones[y]; }
    }
    workgroupBarrier();
  }
  let width = uniforms.d + 1;
  let base = ${backward ? 'select(uniforms.gradientAt, uniforms.sumsAt, ofKeys)' : 'uniforms.sumsAt'} + (head * uniforms.segments + segment) * uniforms.r * width;
  for (var y = 0; y < 4; y++) {
    let i = feature0 + 4 * ty + y;
    if (i < uniforms.r) {
      var acc = acc0;
      if (y == 1) { acc = acc1; } else if (y == 2) { acc = acc2; } else if (y == 3) { acc = acc3; }
      for (var x = 0; x < 4; x++) {
        let j = column0 + 4 * tx + x;
        if (j < uniforms.d) { scratch[base + i * width + j] = acc[x]; }
      }
      if (column0 == 0 && tx == 0) { scratch[base + i * width + uniforms.d] = z[y]; }
    }
  }`;

export function sumsProgram(map: PointwiseMap, backward: boolean): WebGpuProgram {
  return {
    key: `sums ${map} ${backward ? 'backward' : 'forward'}`,
    buffers: [...reads(...(backward ? ['q'] : []), 'k', 'v', 'mask'), ...writes('scratch')],
    uniforms: CALL_UNIFORMS,
    workgroupSize: 64,
    source: () => ({
      declarations: [
        'var<workgroup> bs: array<vec4<f32>, 256>;\nvar<workgroup> cs: array<vec4<f32>, 256>;\nvar<workgroup> ones: array<f32, 32>;',
        HEAD,
        phi(map),
        kept('mask'),
        KEY,
        VALUE,
        ...(backward ? [QUERY, ROW_GRADIENT] : []),
      ].join('\n'),
      main: main(backward),
    }),
  };
}

/** Workgroups of one sum over all heads and segments. */
export const sumGroups = (heads: number, segments: number, r: number, d: number): number =>
  heads * segments * Math.ceil(r / TILE) * Math.ceil(d / TILE);
