export {
  type FeatureMapFactory,
  type FeatureMapLike,
  featureMapFromConfig,
  featureMaps,
  registerFeatureMap,
  resolveFeatureMap,
} from './registry';
export type {FeatureMap, FeatureMapContext, FeatureMapWeight} from './types';
