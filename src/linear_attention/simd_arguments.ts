/** The SIMD module's exports, its argument block and its scratch memory. The other side is src/wasm/assembly/args.ts. */
import {POINTWISE_MAPS} from '../pointwise';
import type {Dims, LinearAttentionAttrs} from './spec';

/** The passes take the address of an argument block. */
export interface SimdExports {
  forwardCausal(args: number): void;
  forwardKeys(args: number): void;
  forwardQueries(args: number): void;
  backwardQueriesCausal(args: number): void;
  backwardKeysCausal(args: number): void;
  backwardState(args: number): void;
  backwardQueries(args: number): void;
  backwardKeys(args: number): void;
  packState(
    src: number,
    rowStep: number,
    columnStep: number,
    r: number,
    d: number,
    dst: number,
    rows: number,
    columns: number,
  ): void;
  unpackState(state: number, rows: number, columns: number, r: number, d: number, dst: number): void;
  transposeState(state: number, rows: number, columns: number, dst: number): void;
  /** Bytes of scratch that `step` needs. */
  stepScratch(r: number): number;
  step(
    q: number,
    k: number,
    v: number,
    s: number,
    z: number,
    output: number,
    newS: number,
    newZ: number,
    count: number,
    r: number,
    d: number,
    map: number,
    normalize: number,
    eps: number,
    scale: number,
    scratch: number,
  ): void;
}

/** The fields of Args, in its order. All are 32-bit numbers. */
const FIELDS = [
  'heads',
  'length',
  'block',
  'tokenStride',
  'r',
  'd',
  'rows',
  'columns',
  'map',
  'normalize',
  'eps',
  'scale',
  'q',
  'k',
  'v',
  'mask',
  'output',
  'inverse',
  'dOutput',
  'dq',
  'dk',
  'dv',
  'state',
  'transposed',
  'z',
  'zLocal',
  'stateLocal',
  'queries',
  'keys',
  'values',
  'dDenominator',
  'zeros',
  'spare',
  'pairs',
  'partial',
  'gathered',
  'coefficients',
  'table',
] as const;

type Field = (typeof FIELDS)[number];
const FLOATS: readonly Field[] = ['eps', 'scale'];
const PLACES = new Map(FIELDS.map((field, i) => [field, i]));

/** Where one call's scratch lies, and how the work is cut. */
export interface Plan {
  /** Heads that run together, at most. */
  heads: number;
  /** Tokens that are mapped at a time. */
  block: number;
  /** r and d rounded up to multiples of four. */
  rows: number;
  columns: number;
  /** Bytes of scratch, the argument block at its start. */
  bytes: number;
  /** Offsets of the parts from the start. */
  parts: {[part: string]: number};
}

/** Packed states of at most this many bytes stay in the second-level cache with everything else. */
const STATES_BYTES = 1 << 18;
/** Mapped rows of one block, of q as of k, take at most this many bytes: few heads run in longer blocks. */
const BLOCK_BYTES = 1 << 16;
const MIN_BLOCK = 16;
const MAX_BLOCK = 128;

/**
 * Beyond this length the causal state is summed block by block, for else its relative error would grow beyond 3e-6 (root
 * mean square). So it is in every call that goes on from a state, since nobody knows how long it has become.
 */
const LONG = 16384;

const roundUp = (x: number, multiple: number): number => Math.ceil(x / multiple) * multiple;

/** Cuts a call: BNHD runs several heads at once, because their rows alternate in memory; BHND one. */
export function planOf({H, Nq, Nk, r, d}: Dims, attrs: LinearAttentionAttrs, backward: boolean): Plan {
  const rows = roundUp(r, 4);
  const columns = roundUp(d, 4);
  const state = rows * columns * 4;
  const fitting = Math.max(1, Math.floor(STATES_BYTES / (state * (backward ? 2 : 1))));
  const heads = attrs.dataFormat === 'BHND' ? 1 : Math.min(H, fitting);
  const long = attrs.causal && !backward && Nk > (attrs.hasState ? 1 : LONG);
  const row = Math.max(rows, columns) * 4;
  const tokens = Math.floor(BLOCK_BYTES / (heads * row)) & ~3;
  const longest = Math.max(MIN_BLOCK, Math.min(MAX_BLOCK, tokens));
  const block = Math.min(longest, roundUp(Math.max(Nq, Nk, 1), 2));
  const parts: {[part: string]: number} = {};
  let bytes = 0;
  const take = (part: string, size: number) => {
    parts[part] = bytes;
    bytes = roundUp(bytes + size, 64);
  };
  take('args', FIELDS.length * 4);
  // TABLE_BYTES of src/wasm/assembly/feature_maps.ts.
  take('table', 2176);
  take('coefficients', 20);
  take('zeros', row);
  take('spare', 8 * row);
  take('pairs', 4 * row);
  if (!attrs.causal) {
    take('gathered', 128 * row);
  }
  take('state', heads * state);
  take('z', heads * rows * 4);
  take('zLocal', heads * rows * 4);
  take('queries', block * heads * rows * 4);
  take('keys', block * heads * rows * 4);
  if (backward) {
    take('transposed', heads * state);
    take('partial', 4 * row);
  } else if (long) {
    take('stateLocal', state);
  }
  take('values', block * heads * columns * 4);
  take('dDenominator', block * heads * 4);
  return {heads, block, rows, columns, bytes, parts};
}

/** An argument block over `memory`. Fields are written one by one and kept between calls. */
export class Arguments {
  private readonly integers: Int32Array;
  private readonly floats: Float32Array;

  constructor(
    buffer: ArrayBufferLike,
    readonly at: number,
    readonly plan: Plan,
    {r, d}: Dims,
    attrs: LinearAttentionAttrs,
  ) {
    this.integers = new Int32Array(buffer, at, FIELDS.length);
    this.floats = new Float32Array(buffer, at, FIELDS.length);
    this.integers.fill(0);
    const {rows, columns} = plan;
    new Float32Array(buffer, at + plan.parts.zeros, Math.max(rows, columns)).fill(0);
    for (const [part, offset] of Object.entries(plan.parts)) {
      if (part !== 'args') {
        this.set(part as Field, at + offset);
      }
    }
    this.set('block', plan.block);
    this.set('r', r);
    this.set('d', d);
    this.set('rows', rows);
    this.set('columns', columns);
    this.set('map', POINTWISE_MAPS.indexOf(attrs.featureMap));
    this.set('normalize', attrs.normalize ? 1 : 0);
    this.set('eps', attrs.eps);
    this.set('scale', attrs.scale);
  }

  set(field: Field, value: number): void {
    const place = PLACES.get(field) as number;
    if (FLOATS.includes(field)) {
      this.floats[place] = value;
    } else {
      this.integers[place] = value;
    }
  }

  /** Address of a part that has `size` bytes for each head. */
  part(name: string, head = 0, size = 0): number {
    return this.at + this.plan.parts[name] + head * size;
  }
}
