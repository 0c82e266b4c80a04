/** How a call is cut into segments: by how many workgroups fill the device, and by what its buffers can hold. */
import type {WebGpuBackend} from '../../tfjs';
import type {Dims} from '../spec';
import {BLOCK} from './walk';

/** A walk shorter than this is not worth two more dispatches. */
const SHORTEST = 4 * BLOCK;
/**
 * Workgroups of 64 that keep a device busy. A GPU runs hundreds at once. A software device runs one per core, so there
 * the walk over whole sequences, which does least work, is best. Not tuned: no GPU could be measured.
 */
const FILL = {gpu: 512, software: 4};

let forced: number | null = null;

/** For tests: tokens per segment (a multiple of 32) instead of what the rule gives; null ends that. */
export function forceSegmentLength(length: number | null): void {
  forced = length;
}

const isSoftware = ({adapterInfo}: WebGpuBackend): boolean =>
  ['swiftshader', 'llvmpipe', 'warp'].includes((adapterInfo?.architecture ?? '').toLowerCase());

export interface Segments {
  count: number;
  length: number;
}

/**
 * @param groupsPerSegment Workgroups that walk one segment of all heads.
 * @param floatsPerSegment What a segment needs of the scratch buffer, besides `fixedFloats`.
 */
export function segmentsOf(
  backend: WebGpuBackend,
  {Nq, Nk}: Dims,
  groupsPerSegment: number,
  floatsPerSegment: number,
  fixedFloats: number,
): Segments {
  const N = Math.max(Nq, Nk);
  const fill = isSoftware(backend) ? FILL.software : FILL.gpu;
  const wanted = Math.min(Math.ceil(fill / groupsPerSegment), Math.ceil(N / SHORTEST));
  const room = Math.floor(
    (backend.device.limits.maxStorageBufferBindingSize / 4 - fixedFloats) / floatsPerSegment,
  );
  if (room < 1) {
    throw new Error(
      `linearAttention: expected its scratch of ${4 * (fixedFloats + floatsPerSegment)} bytes to fit into one buffer of the WebGPU device, which takes ${backend.device.limits.maxStorageBufferBindingSize}; use a smaller batch, fewer features or a shorter sequence.`,
    );
  }
  const count = Math.max(1, Math.min(wanted, room));
  const length = forced ?? Math.ceil(N / count / BLOCK) * BLOCK;
  return {count: Math.ceil(N / length), length};
}
