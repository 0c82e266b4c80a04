/**
 * Reading and writing the callers' layouts. q, k, v, output and their gradients are [B,H,N,w] or [B,N,H,w]; a pass works
 * on the 2x2 block of tokens 2t, 2t+1 and columns c, c+1 of one head.
 */
import type {TensorInfo} from '@tensorflow/tfjs-core';
import {packedShape, type WebglBackend} from '../../tfjs';
import {viewed} from '../../webgl/draw';
import type {DataFormat} from '../spec';

/**
 * How a tensor's texels lie: a block is one texel of [1,BH,N,w] ('tokens'), one of [1,B,N,Hw] ('columns', for w even), or
 * rows of two texels of [1,BN,H,w] ('heads').
 */
type Packing = 'tokens' | 'columns' | 'heads';

export interface Reader {
  info: TensorInfo;
  /** Declares `vec4 read<name>(int bh, int t, int c)`. Values beyond the tensor are whatever the padding holds. */
  code: string;
}

/** True where a packed texture of shape a is one of shape b as well, both of rank 4. */
const alike = (a: number[], b: number[]): boolean =>
  a.at(-1) === b[3] && (a.at(-2) === b[2] || (even(a.at(-2)) && even(b[2])));
const even = (n: number | undefined): boolean => n !== undefined && n % 2 === 0;

/** Of two views of a [B,N,H,w] tensor that an op may have packed already, the one that it lies in. */
function packingOf(backend: WebglBackend, info: TensorInfo, format: DataFormat): Packing {
  if (format === 'BHND') {
    return 'tokens';
  }
  const [, N, H, w] = info.shape;
  const lies = packedShape(backend, info);
  const columns = [1, 1, N, H * w];
  return w % 2 === 0 && (lies === null || (lies.length > 1 && alike(lies, columns))) ? 'columns' : 'heads';
}

/** A reader of q, k, v, output or a gradient. `name` starts with a capital; the sampler is its lower-case form. */
export function readerOf(backend: WebglBackend, info: TensorInfo, format: DataFormat, name: string): Reader {
  const signature = `vec4 read${name}(int bh, int t, int c)`;
  const [a, b, c, w] = info.shape;
  switch (packingOf(backend, info, format)) {
    case 'tokens':
      return {
        info: viewed(info, [1, a * b, c, w]),
        code: `${signature} { return get${name}(0, bh, 2 * t, c); }`,
      };
    case 'columns':
      return {
        info: viewed(info, [1, a, b, c * w]),
        code: `${signature} {
  int b = bh / heads;
  return get${name}(0, b, 2 * t, (bh - b * heads) * ${w} + c);
}`,
      };
    case 'heads':
      return {
        info: viewed(info, [1, a * b, c, w]),
        code: `${signature} {
  int b = bh / heads;
  int h = bh - b * heads;
  int n = b * length${name} + 2 * t;
  vec4 first = get${name}(0, n, h, c);
  vec4 second = 2 * t + 1 < length${name} ? get${name}(0, n + 1, h, c) : first;
  return imod(h, 2) == 0 ? vec4(first.xy, second.xy) : vec4(first.zw, second.zw);
}`,
      };
  }
}

/** Reads the mask of tokens 2t, 2t+1, one number each; `mask` is [B,N]. */
export const MASK = `
vec2 readMask(int bh, int t) {
  int b = bh / heads;
  vec4 m = getMask(0, 0, b, 2 * t);
  return imod(b, 2) == 0 ? m.xy : m.zw;
}
`;

export const maskView = (mask: TensorInfo): TensorInfo => viewed(mask, [1, 1, ...mask.shape]);

export interface Writer {
  /** Shape of the texture that a pass draws. */
  shape: number[];
  /** Declares `void locate(out int bh, out int t, out int c)`: the block that this texel holds. */
  code: string;
  /** What a second pass must still bring into [B,N,H,w]: heads of an odd width share texels. */
  unfinished: boolean;
}

/** A writer of [B,H,N,w] or [B,N,H,w]. */
export function writerOf(B: number, H: number, N: number, w: number, format: DataFormat): Writer {
  const signature = 'void locate(out int bh, out int t, out int c)';
  if (format === 'BNHD' && w % 2 === 0) {
    return {
      shape: [1, B, N, H * w],
      code: `${signature} {
  ivec4 o = getOutputCoords();
  int h = o.w / ${w};
  bh = o.y * heads + h; t = o.z / 2; c = o.w - h * ${w};
}`,
      unfinished: false,
    };
  }
  return {
    shape: [1, B * H, N, w],
    code: `${signature} { ivec4 o = getOutputCoords(); bh = o.y; t = o.z / 2; c = o.w; }`,
    unfinished: format === 'BNHD',
  };
}
