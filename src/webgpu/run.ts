/**
 * Running WGSL programs of several outputs on tfjs's webgpu backend. Its own runWebGPUProgram knows one output per
 * program; linear attention has up to four, and would need a dispatch for each.
 */
import * as tf from '@tensorflow/tfjs-core';
import type {WebGpuBackend} from '../tfjs';

export interface WebGpuProgram {
  /** Says everything that is baked into the source: programs of equal keys share a pipeline. */
  key: string;
  /**
   * Storage buffers in binding order: at most 8, all of them used. Those that are only read may hold int32 (tfjs does
   * not convert a buffer when it casts upwards), so sources read them as `f32(name[i])`.
   */
  buffers: readonly {name: string; write: boolean}[];
  /** Numbers that change from run to run, as `uniforms.name`. */
  uniforms: readonly {name: string; type: 'i32' | 'f32'}[];
  workgroupSize: number;
  /** Declarations, and the statements of main: `group` is the workgroup's number, `thread` the invocation's in it. */
  source(): {declarations: string; main: string};
}

/** Most workgroups in one dimension of a dispatch, unless the device says otherwise. */
const MAX_WORKGROUPS = 65535;

type ElementType = 'f32' | 'i32';

/** The whole shader. tfjs puts two constants, then shape and stride of each buffer, before a program's own uniforms. */
export function shaderOf(program: WebGpuProgram, types: readonly ElementType[]): string {
  const {buffers, uniforms, workgroupSize, source} = program;
  const {declarations, main} = source();
  const shapes = buffers.map((_, i) => `shape${i}: i32, stride${i}: i32,`);
  const own = uniforms.map(({name, type}) => `${name}: ${type},`);
  const bound = buffers.map(
    ({name, write}, i) =>
      `@group(0) @binding(${i}) var<storage, ${write ? 'read_write' : 'read'}> ${name}: array<${types[i]}>;`,
  );
  // The test of `groups` also keeps the uniform buffer in the layout that the device derives from the source.
  return `
struct Uniforms { NAN: f32, INFINITY: f32, ${shapes.join(' ')} groups: i32, ${own.join(' ')} };
${bound.join('\n')}
@group(0) @binding(${buffers.length}) var<uniform> uniforms: Uniforms;
${declarations}
@compute @workgroup_size(${workgroupSize})
fn _start(
  @builtin(local_invocation_index) localIndex: u32,
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(num_workgroups) workgroups: vec3<u32>,
) {
  let group = i32(workgroup.y * workgroups.x + workgroup.x);
  if (group >= uniforms.groups) { return; }
  let thread = i32(localIndex);
${main}
}
`;
}

/** Spreads `groups` workgroups over two dimensions where they are too many for one. */
export function dispatchOf(groups: number, limit = MAX_WORKGROUPS): [number, number, number] {
  const rows = Math.ceil(groups / limit);
  return [Math.ceil(groups / rows), rows, 1];
}

function pipelineOf(
  backend: WebGpuBackend,
  program: WebGpuProgram,
  types: readonly ElementType[],
  compileOnly: boolean,
): object {
  // Outside tfjs's own keys, which start with the name of an op.
  const key = `tfjs-linear-attention ${program.key} ${types}`;
  let pipeline = backend.pipelineCache[key];
  if (pipeline === undefined) {
    const module = backend.device.createShaderModule({code: shaderOf(program, types), label: key});
    const descriptor = {label: key, layout: 'auto', compute: {module, entryPoint: '_start'}};
    pipeline = compileOnly
      ? backend.device.createComputePipelineAsync(descriptor)
      : backend.device.createComputePipeline(descriptor);
    backend.pipelineCache[key] = pipeline;
  }
  return pipeline;
}

/**
 * Runs a program over `groups` workgroups. Errors of the device do not throw here: WebGPU reports them as
 * `uncapturederror` of the device.
 */
export function runProgram(
  backend: WebGpuBackend,
  program: WebGpuProgram,
  tensors: {[buffer: string]: tf.TensorInfo},
  uniforms: {[name: string]: number},
  groups: number,
): void {
  // A view of rank 1 for each, so that the uniforms' layout does not depend on ranks.
  const flat = program.buffers.map(({name}) => {
    const {dataId, dtype, shape} = tensors[name];
    backend.uploadToGPU(dataId);
    return {dataId, dtype, shape: [tf.util.sizeFromShape(shape)]};
  });
  const types = flat.map(({dataId}) =>
    backend.tensorMap.get(dataId).dtype === 'float32' ? ('f32' as const) : ('i32' as const),
  );
  const compileOnly = tf.env().getBool('WEBGPU_ENGINE_COMPILE_ONLY');
  const pipeline = pipelineOf(backend, program, types, compileOnly);
  if (compileOnly) {
    return;
  }
  const own = program.uniforms.map(({name, type}) => ({
    type: type === 'i32' ? ('int32' as const) : ('float32' as const),
    data: [uniforms[name]],
  }));
  const dispatch = dispatchOf(groups, backend.device.limits.maxComputeWorkgroupsPerDimension);
  const [first, ...rest] = flat;
  backend.recordAndSubmit({pipeline, dispatch}, first, rest, [{type: 'int32', data: [groups]}, ...own]);
}
