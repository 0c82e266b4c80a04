export type {FeatureMap, FeatureMapContext, FeatureMapWeight} from './feature_maps/types';
export type {LinearAttentionState} from './state';
