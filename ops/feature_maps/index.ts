export type {CosFormerConfig} from './cos_former';
export type {DpfpConfig} from './dpfp';
export type {FavorConfig} from './favor';
export type {FavorKind} from './favor_features';
export type {HedgehogConfig} from './hedgehog';
export type {RebasedConfig} from './rebased';
export {
  type FeatureMapFactory,
  type FeatureMapLike,
  featureMapFromConfig,
  featureMaps,
  registerFeatureMap,
  resolveFeatureMap,
} from './registry';
export type {FeatureMap, FeatureMapContext, FeatureMapWeight} from './types';
