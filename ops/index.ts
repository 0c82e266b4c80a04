export type {DataFormat} from '../src/linear_attention/spec';
export type {PointwiseMap} from '../src/pointwise';
export type {RotaryPairing} from '../src/rotary';
export {
  type CosFormerConfig,
  type DpfpConfig,
  type FavorConfig,
  type FavorKind,
  type FeatureMap,
  type FeatureMapContext,
  type FeatureMapFactory,
  type FeatureMapLike,
  type FeatureMapWeight,
  featureMaps,
  type HedgehogConfig,
  type RebasedConfig,
  registerFeatureMap,
} from './feature_maps';
export {type ImpliedAttentionOptions, impliedAttention} from './implied_attention';
export {type KVCache, type KVCacheSizes, kvCache} from './kv_cache';
export {type LinearAttentionOptions, linearAttention, type OutputAndState} from './linear_attention';
export type {InitialState, SharedOptions} from './linear_attention_call';
export {type LinearAttentionStepOptions, linearAttentionStep} from './linear_attention_step';
export {linearAttentionStepInPlace} from './linear_attention_step_in_place';
export {type RotaryOptions, rotary} from './rotary';
export {type SoftmaxAttentionOptions, softmaxAttention} from './softmax_attention';
export {type SoftmaxAttentionStepOptions, softmaxAttentionStep} from './softmax_attention_step';
export {disposeState, type LinearAttentionState, type ZeroStateArgs, zeroState} from './state';
