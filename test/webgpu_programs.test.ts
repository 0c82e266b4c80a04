/** What can be said of the WGSL programs without a device: keys, limits, how calls are cut up. */
import {walkProgram as backwardWalk} from '../src/linear_attention/webgpu/backward';
import {walkProgram as forwardWalk} from '../src/linear_attention/webgpu/forward';
import {segmentsOf} from '../src/linear_attention/webgpu/plan';
import {rowGradientsProgram} from '../src/linear_attention/webgpu/row_gradients';
import {scanProgram} from '../src/linear_attention/webgpu/scan';
import {stepProgram} from '../src/linear_attention/webgpu/step';
import {sumsProgram} from '../src/linear_attention/webgpu/sums';
import {capacityFor} from '../src/linear_attention/webgpu/walk';
import {POINTWISE_MAPS} from '../src/pointwise';
import type {WebGpuBackend} from '../src/tfjs';
import {dispatchOf, shaderOf, type WebGpuProgram} from '../src/webgpu/run';

const PROGRAMS: WebGpuProgram[] = [
  rowGradientsProgram(),
  ...[true, false].map(scanProgram),
  ...POINTWISE_MAPS.flatMap((map) => [
    stepProgram(map),
    sumsProgram(map, false),
    sumsProgram(map, true),
    ...[1, 100, 1000].flatMap((m) => [
      forwardWalk(map, capacityFor(m, false)),
      backwardWalk(map, capacityFor(m, true)),
    ]),
  ]),
];

const shader = (program: WebGpuProgram): string =>
  shaderOf(
    program,
    program.buffers.map(() => 'f32'),
  );

const WORDS: {[type: string]: number} = {f32: 1, 'vec2<f32>': 2, 'vec4<f32>': 4};

describe('the WGSL programs', () => {
  test('have the same source when they have the same key, and only then', () => {
    const sources = new Map(PROGRAMS.map((program) => [program.key, shader(program)]));
    for (const program of PROGRAMS) {
      expect(sources.get(program.key)).toBe(shader(program));
    }
    expect(new Set(sources.values()).size).toBe(sources.size);
  });

  test.each(PROGRAMS.map((program) => [program.key, program] as const))(
    '%s stays within the limits that every device has',
    (_, program) => {
      const arrays = [...shader(program).matchAll(/var<workgroup> \w+: array<([\w<>]+), (\d+)>/g)];
      const bytes = arrays.reduce((sum, [, type, length]) => sum + 4 * WORDS[type] * Number(length), 0);
      expect(bytes).toBeLessThanOrEqual(16384);
      expect(program.workgroupSize).toBeLessThanOrEqual(256);
      expect(program.buffers.length).toBeLessThanOrEqual(8);
    },
  );

  test.each(PROGRAMS.map((program) => [program.key, program] as const))(
    '%s uses every buffer: the device leaves out of the layout what is not used',
    (_, program) => {
      const {declarations, main} = program.source();
      for (const {name} of program.buffers) {
        expect(`${declarations}${main}`).toMatch(new RegExp(`\\b${name}\\[`));
      }
    },
  );
});

test.each([
  [1, 65535],
  [65535, 65535],
  [65536, 65535],
  [1000003, 65535],
  [4, 2],
])('%i workgroups are all dispatched, and few more, where a dimension takes %i', (groups, limit) => {
  const [x, y, z] = dispatchOf(groups, limit);
  expect(Math.max(x, y)).toBeLessThanOrEqual(limit);
  expect(x * y * z).toBeGreaterThanOrEqual(groups);
  expect(x * y * z).toBeLessThan(groups + y);
});

describe('segments', () => {
  const backend = (architecture: string, bytes = 2 ** 27) =>
    ({
      adapterInfo: {architecture},
      device: {limits: {maxStorageBufferBindingSize: bytes}},
    }) as WebGpuBackend;
  const dims = {B: 1, H: 8, Nq: 4096, Nk: 4096, r: 64, d: 64};

  test('are few where heads and columns fill the device', () => {
    expect(segmentsOf(backend('ampere'), {...dims, B: 64}, 64 * 8 * 4, 1, 0).count).toBe(1);
    expect(segmentsOf(backend('swiftshader'), dims, 8 * 4, 1, 0).count).toBe(1);
  });

  test('fill a GPU that one walk a head would not, in whole blocks', () => {
    const {count, length} = segmentsOf(backend('ampere'), dims, 8 * 4, 1, 0);
    expect(count * 8 * 4).toBeGreaterThanOrEqual(512);
    expect(length % 32).toBe(0);
    expect(count * length).toBeGreaterThanOrEqual(4096);
    expect((count - 1) * length).toBeLessThan(4096);
  });

  test('are not made of short sequences', () => {
    expect(segmentsOf(backend('ampere'), {...dims, Nq: 128, Nk: 128}, 8 * 4, 1, 0).count).toBe(1);
  });

  test('get fewer where the buffers of the device hold no more, then there is an error that says so', () => {
    expect(segmentsOf(backend('ampere', 4 * 1000), dims, 32, 100, 500).count).toBe(5);
    expect(() => segmentsOf(backend('ampere', 4 * 1000), dims, 32, 600, 500)).toThrow(
      /^linearAttention: expected its scratch of 4400 bytes to fit into one buffer of the WebGPU device, which takes 4000/,
    );
  });
});
