/** The uniforms of a call, from its sizes and attributes. */
import type {Dims, LinearAttentionAttrs} from '../spec';
import type {Segments} from './plan';
import type {CallUniforms} from './wgsl';

/** Offsets that a program does not use stay 0. */
export function callUniforms(
  {B, H, Nq, Nk, r, d}: Dims,
  attrs: LinearAttentionAttrs,
  segments: Segments,
  rest: Partial<CallUniforms>,
): CallUniforms {
  const flag = (on: boolean) => (on ? 1 : 0);
  return {
    B,
    H,
    Nq,
    Nk,
    r,
    d,
    bnhd: flag(attrs.dataFormat === 'BNHD'),
    causal: flag(attrs.causal),
    normalize: flag(attrs.normalize),
    hasMask: flag(attrs.hasMask),
    hasState: flag(attrs.hasState),
    returnState: flag(attrs.returnState !== false),
    eps: attrs.eps,
    scale: attrs.scale,
    segments: segments.count,
    segmentLength: segments.length,
    hasSums: 0,
    sumsAt: 0,
    gradientAt: 0,
    copyAt: 0,
    rowsAt: 0,
    maskAt: 0,
    ...rest,
  };
}
