export type {FeatureMap, FeatureMapContext, FeatureMapWeight} from './feature_maps/types';
export {type KVCache, type KVCacheSizes, kvCache} from './kv_cache';
export {type RotaryOptions, rotary} from './rotary';
export {type SoftmaxAttentionOptions, softmaxAttention} from './softmax_attention';
export {type SoftmaxAttentionStepOptions, softmaxAttentionStep} from './softmax_attention_step';
export type {LinearAttentionState} from './state';
