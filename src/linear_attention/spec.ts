/**
 * The kernels' contract: names, inputs, attributes, outputs. Every backend implements exactly this.
 *
 * Letters: B batch, H heads, N length (Nq, Nk), r features, d values. Layouts of q, k, v, output and their
 * gradients follow `dataFormat`: BHND is [B,H,N,.], BNHD is [B,N,H,.]. mask is always [B,Nk], s [B,H,r,d], z [B,H,r].
 */
import type {NamedAttrMap, NamedTensorMap, Tensor, TensorInfo} from '@tensorflow/tfjs-core';
import type {PointwiseMap} from '../pointwise';

/** Layout of queries, keys, values and outputs: [B,H,N,.] or [B,N,H,.]. */
export type DataFormat = 'BHND' | 'BNHD';

/** ONNX LinearAttention's `update_rule`. Only the plain rule S += phi(k) v^T exists so far. */
export type UpdateRule = 'linear';

export const LinearAttention = 'LinearAttention';
export const LinearAttentionGrad = 'LinearAttentionGrad';

export interface LinearAttentionAttrs {
  updateRule: UpdateRule;
  causal: boolean;
  /** Fused pointwise map of q and k. Other maps are applied before the kernel, which then gets 'identity'. */
  featureMap: PointwiseMap;
  normalize: boolean;
  /** Added to the denominator; used only when `normalize`. */
  eps: number;
  /** Multiplies the numerator; used only when not `normalize`. */
  scale: number;
  dataFormat: DataFormat;
  /** False: `mask` is a one-element placeholder. */
  hasMask: boolean;
  /** False: `s` and `z` are one-element placeholders that stand for zeros. */
  hasState: boolean;
  /** False: nobody reads s and z, and a kernel may return [1] placeholders for them. */
  returnState?: boolean;
}

/** Inputs as tensors, which tfjs's ops take; kernels are handed bare infos. */
export type Live<T> = {[K in keyof T]: Tensor};

/** All six are always present (tfjs's tape cannot save an omitted input). mask is float32, 1 keeps and 0 drops. */
export interface LinearAttentionInputs {
  q: TensorInfo;
  k: TensorInfo;
  v: TensorInfo;
  mask: TensorInfo;
  s: TensorInfo;
  z: TensorInfo;
}

/**
 * What LinearAttention returns, in order: output, s, z, inverse.
 *
 * `inverse` is den == 0 ? 0 : 1 / (den + eps) per query, [B,H,Nq] (BNHD: [B,Nq,H]); a [1] placeholder when not
 * `normalize`. It is saved for backward, never differentiated and never shown to users. A backend whose backward needs
 * something else puts that into `inverse` and a fifth output, as tensors of shape [1] (see webgl.ts).
 */
export type LinearAttentionOutputs = [
  output: TensorInfo,
  s: TensorInfo,
  z: TensorInfo,
  inverse: TensorInfo,
  more?: TensorInfo,
];

/** LinearAttentionGrad: the same attributes; the forward inputs, what forward saved, and the incoming gradients. */
export interface LinearAttentionGradInputs extends LinearAttentionInputs {
  output: TensorInfo;
  inverse: TensorInfo;
  dOutput: TensorInfo;
  /** Gradient of the final state, [B,H,r,d] and [B,H,r]; zeros where nothing arrives. Unused when not `returnState`. */
  dS: TensorInfo;
  dZ: TensorInfo;
}

/** What LinearAttentionGrad returns, in order. ds and dz are [1] placeholders of 0 when not `hasState`. */
export type LinearAttentionGradOutputs = [
  dq: TensorInfo,
  dk: TensorInfo,
  dv: TensorInfo,
  ds: TensorInfo,
  dz: TensorInfo,
];

export interface Dims {
  B: number;
  H: number;
  Nq: number;
  Nk: number;
  r: number;
  d: number;
}

/** Reads the sizes from q, k and v. */
export function dimsOf(inputs: {q: TensorInfo; k: TensorInfo; v: TensorInfo}, dataFormat: DataFormat): Dims {
  const [head, length] = dataFormat === 'BHND' ? [1, 2] : [2, 1];
  const {q, k, v} = inputs;
  return {
    B: q.shape[0],
    H: q.shape[head],
    Nq: q.shape[length],
    Nk: k.shape[length],
    r: q.shape[3],
    d: v.shape[3],
  };
}

export const asInputs = (inputs: LinearAttentionInputs | LinearAttentionGradInputs): NamedTensorMap =>
  inputs as unknown as NamedTensorMap;

export const asAttrs = (attrs: LinearAttentionAttrs): NamedAttrMap => attrs as unknown as NamedAttrMap;

/** What a kernelFunc or gradFunc is handed, read as this kernel's. */
export const inputsOf = (inputs: object): LinearAttentionInputs => inputs as LinearAttentionInputs;

export const gradInputsOf = (inputs: object): LinearAttentionGradInputs =>
  inputs as LinearAttentionGradInputs;

export const attrsOf = (attrs: object | undefined): LinearAttentionAttrs => attrs as LinearAttentionAttrs;
