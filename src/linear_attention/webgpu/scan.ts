/**
 * From each segment's sums to what each segment starts from: an exclusive scan in place, one invocation per element and
 * head, from the initial state forward (S~) and from the final state's gradient backward (G~). Not causal: the total.
 * The mask is copied behind, because the next program has no binding left for it.
 */
import type {WebGpuProgram} from '../../webgpu/run';
import {CALL_UNIFORMS, reads, writes} from './wgsl';

const ELEMENT = `
  var index = group * 64 + thread;
  let width = uniforms.d + 1;
  let elements = uniforms.B * uniforms.H * uniforms.r * width;
  let matrix = uniforms.r * width;`;

const COPY_MASK = `
    if (uniforms.hasMask != 0 && index < uniforms.B * uniforms.Nk) {
      scratch[uniforms.maskAt + index] = f32(mask[index]);
    }`;

/** Of S~: the scan, or the total, which is stored as the first segment's and given to \`total\`. */
const SUMS = (total: string): string => `
    let bh = index / matrix;
    let i = (index % matrix) / width;
    let c = index % width;
    var run = 0.0;
    if (uniforms.hasState != 0) {
      if (c < uniforms.d) {
        run = f32(initialS[(bh * uniforms.r + i) * uniforms.d + c]);
      } else {
        run = f32(initialZ[bh * uniforms.r + i]);
      }
    }
    var at = uniforms.sumsAt + bh * uniforms.segments * matrix + index % matrix;
    for (var segment = 0; segment < uniforms.segments; segment++) {
      var sum = 0.0;
      if (uniforms.hasSums != 0) { sum = scratch[at]; }
      scratch[at] = run;
      run += sum;
      at += matrix;
    }
    if (uniforms.causal == 0) {
      scratch[at - uniforms.segments * matrix] = run;
      ${total}
    }`;

const FORWARD = `${ELEMENT}
  if (index < elements) {
    ${SUMS(`if (uniforms.returnState == 0) {
        // Nobody reads them.
      } else if (c < uniforms.d) {
        s[(bh * uniforms.r + i) * uniforms.d + c] = run;
      } else {
        z[bh * uniforms.r + i] = run;
      }`)}
  } else {
    index -= elements;
    ${COPY_MASK}
  }`;

const BACKWARD = `${ELEMENT}
  if (index < elements) {
    ${SUMS('')}
  } else if (index < 2 * elements) {
    index -= elements;
    let bh = index / matrix;
    let i = (index % matrix) / width;
    let c = index % width;
    var run = 0.0;
    if (uniforms.returnState == 0) {
      run = 0.0;
    } else if (c < uniforms.d) {
      run = f32(dS[(bh * uniforms.r + i) * uniforms.d + c]);
    } else {
      run = f32(dZ[bh * uniforms.r + i]);
    }
    let first = bh * uniforms.segments * matrix + index % matrix;
    for (var segment = uniforms.segments - 1; segment >= 0; segment--) {
      let at = first + segment * matrix;
      var sum = 0.0;
      if (uniforms.hasSums != 0) { sum = scratch[uniforms.gradientAt + at]; }
      scratch[uniforms.gradientAt + at] = run;
      scratch[uniforms.copyAt + at] = run;
      run += sum;
    }
    if (uniforms.causal == 0) {
      scratch[uniforms.gradientAt + first] = run;
      scratch[uniforms.copyAt + first] = run;
    }
    if (uniforms.hasState != 0) {
      if (c < uniforms.d) {
        ds[(bh * uniforms.r + i) * uniforms.d + c] = run;
      } else {
        dz[bh * uniforms.r + i] = run;
      }
    }
  } else {
    index -= 2 * elements;
    ${COPY_MASK}
  }`;

export function scanProgram(backward: boolean): WebGpuProgram {
  return {
    key: `scan ${backward ? 'backward' : 'forward'}`,
    buffers: [
      ...reads('initialS', 'initialZ', 'mask', ...(backward ? ['dS', 'dZ'] : [])),
      ...writes('scratch', ...(backward ? ['ds', 'dz'] : ['s', 'z'])),
    ],
    uniforms: CALL_UNIFORMS,
    workgroupSize: 64,
    source: () => ({declarations: '', main: backward ? BACKWARD : FORWARD}),
  };
}
