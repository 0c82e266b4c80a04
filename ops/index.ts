export {
  type FeatureMap,
  type FeatureMapContext,
  type FeatureMapFactory,
  type FeatureMapLike,
  type FeatureMapWeight,
  featureMaps,
  registerFeatureMap,
} from './feature_maps';
export {type ImpliedAttentionOptions, impliedAttention} from './implied_attention';
export {type KVCache, type KVCacheSizes, kvCache} from './kv_cache';
export {type LinearAttentionOptions, linearAttention, type OutputAndState} from './linear_attention';
export {type LinearAttentionStepOptions, linearAttentionStep} from './linear_attention_step';
export {type RotaryOptions, rotary} from './rotary';
export {type SoftmaxAttentionOptions, softmaxAttention} from './softmax_attention';
export {type SoftmaxAttentionStepOptions, softmaxAttentionStep} from './softmax_attention_step';
export {disposeState, type LinearAttentionState, type ZeroStateArgs, zeroState} from './state';
