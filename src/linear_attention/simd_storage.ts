/**
 * Where the SIMD kernels find a call's arrays: in place, when they lie in the memory that the kernels work on, or
 * copied through a fixed staging area, block by block.
 */
import type {Arguments} from './simd_arguments';
import type {DataFormat, Dims} from './spec';

export type ArrayName = 'q' | 'k' | 'v' | 'mask' | 'output' | 'inverse' | 'dOutput' | 'dq' | 'dk' | 'dv';
export type StateName = 's' | 'z' | 'sOut' | 'zOut' | 'dS' | 'dZ' | 'ds' | 'dz';
export type Use = 'read' | 'write' | 'both';

/** A range of tokens of some heads of one batch entry. */
export interface Part {
  b: number;
  h: number;
  heads: number;
  n: number;
  count: number;
}

export interface Storage {
  /** Tokens that one call may cover, given the arrays it uses. */
  range(names: readonly ArrayName[], heads: number): number;
  /** Fills in the addresses of the arrays, and the token stride, for one part. */
  open(args: Arguments, part: Part, uses: {[name in ArrayName]?: Use}): void;
  /** Makes what the call wrote visible in the arrays. */
  close(): void;
  /** Address of one head's part of a state array; with 'read' its values are there. */
  openState(name: StateName, head: number, use: Use): number;
}

/** Numbers in a row of an array. */
export function rowSize(name: ArrayName, {r, d}: Dims): number {
  switch (name) {
    case 'q':
    case 'k':
    case 'dq':
    case 'dk':
      return r;
    case 'v':
    case 'output':
    case 'dOutput':
    case 'dv':
      return d;
    default:
      return 1;
  }
}

/** Numbers that one head has in a state array. */
export const headSize = (name: StateName, {r, d}: Dims): number =>
  name.toLowerCase().includes('z') ? r : r * d;

const KEY_SIDE: readonly ArrayName[] = ['k', 'v', 'dk', 'dv', 'mask'];

/** Row number of a part's first row. The mask has one row for all heads. */
export function firstRow(name: ArrayName, part: Part, {H, Nq, Nk}: Dims, format: DataFormat): number {
  const N = KEY_SIDE.includes(name) ? Nk : Nq;
  if (name === 'mask') {
    return part.b * N + part.n;
  }
  return format === 'BHND' ? (part.b * H + part.h) * N + part.n : (part.b * N + part.n) * H + part.h;
}

/** Arrays in the kernels' own memory: tfjs's. */
export class InPlace implements Storage {
  constructor(
    private readonly addresses: {[name in ArrayName | StateName]?: number},
    private readonly dims: Dims,
    private readonly format: DataFormat,
  ) {}

  range(): number {
    return Number.POSITIVE_INFINITY;
  }

  open(args: Arguments, part: Part, uses: {[name in ArrayName]?: Use}): void {
    args.set('tokenStride', this.format === 'BHND' ? 1 : this.dims.H);
    for (const key in uses) {
      const name = key as ArrayName;
      const row = firstRow(name, part, this.dims, this.format);
      args.set(name, (this.addresses[name] as number) + row * rowSize(name, this.dims) * 4);
    }
  }

  close(): void {}

  openState(name: StateName, head: number): number {
    return (this.addresses[name] as number) + head * headSize(name, this.dims) * 4;
  }
}

/** Numbers of all staged rows together, at most (unless one block needs more). */
const STAGED = 96 * 1024;

/** Arrays of JavaScript's, copied through the kernels' memory from `at` on. */
export class Staged implements Storage {
  private written: {name: ArrayName; part: Part; at: number}[] = [];
  private state: {name: StateName; head: number} | null = null;

  constructor(
    private readonly memory: Float32Array,
    private readonly at: number,
    private readonly arrays: {[name in ArrayName | StateName]?: Float32Array},
    private readonly dims: Dims,
    private readonly format: DataFormat,
  ) {}

  /** Numbers of staging that a call needs, at most. */
  static size(names: readonly ArrayName[], heads: number, block: number, dims: Dims): number {
    return Math.max(
      dims.r * dims.d,
      Staged.tokens(names, heads, block, dims) * Staged.perToken(names, heads, dims),
    );
  }

  private static perToken(names: readonly ArrayName[], heads: number, dims: Dims): number {
    return names.reduce((sum, name) => sum + (name === 'mask' ? 1 : heads) * rowSize(name, dims), 0);
  }

  private static tokens(names: readonly ArrayName[], heads: number, block: number, dims: Dims): number {
    const fitting = Math.floor(STAGED / Staged.perToken(names, heads, dims));
    return Math.max(block, Math.min(fitting, Math.max(dims.Nq, dims.Nk)));
  }

  range(names: readonly ArrayName[], heads: number): number {
    return Staged.tokens(names, heads, 2, this.dims) & ~1;
  }

  open(args: Arguments, part: Part, uses: {[name in ArrayName]?: Use}): void {
    args.set('tokenStride', part.heads);
    let at = this.at / 4;
    for (const [name, use] of Object.entries(uses) as [ArrayName, Use][]) {
      args.set(name, at * 4);
      if (use !== 'write') {
        this.copy(name, part, at, false);
      }
      if (use !== 'read') {
        this.written.push({name, part, at});
      }
      at += part.count * (name === 'mask' ? 1 : part.heads) * rowSize(name, this.dims);
    }
  }

  close(): void {
    for (const {name, part, at} of this.written) {
      this.copy(name, part, at, true);
    }
    this.written = [];
    if (this.state !== null) {
      const {name, head} = this.state;
      const size = headSize(name, this.dims);
      const from = this.at / 4;
      (this.arrays[name] as Float32Array).set(this.memory.subarray(from, from + size), head * size);
      this.state = null;
    }
  }

  openState(name: StateName, head: number, use: Use): number {
    const size = headSize(name, this.dims);
    if (use === 'write') {
      this.state = {name, head};
    } else {
      const values = this.arrays[name] as Float32Array;
      this.memory.set(values.subarray(head * size, (head + 1) * size), this.at / 4);
    }
    return this.at;
  }

  /** Between an array and the staging area: in one piece where the part's rows lie together. */
  private copy(name: ArrayName, part: Part, at: number, back: boolean): void {
    const array = this.arrays[name] as Float32Array;
    const size = rowSize(name, this.dims);
    const {H} = this.dims;
    const whole = name === 'mask' || this.format === 'BHND' || part.heads === H;
    const rows = name === 'mask' ? 1 : part.heads;
    const [pieces, length] = whole ? [1, part.count * rows * size] : [part.count, rows * size];
    let from = firstRow(name, part, this.dims, this.format) * size;
    for (let i = 0; i < pieces; i++) {
      if (back) {
        array.set(this.memory.subarray(at, at + length), from);
      } else {
        this.memory.set(array.subarray(from, from + length), at);
      }
      at += length;
      from += H * size;
    }
  }
}
