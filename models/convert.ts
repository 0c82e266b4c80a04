import type * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {LinearAttention} from '../layers/linear_attention';
import {SoftmaxAttention} from '../layers/softmax_attention';
import {type FeatureMapLike, resolveFeatureMap} from '../ops/feature_maps';
import type {FeatureMap} from '../ops/feature_maps/types';
import {check, checkOptions, show} from '../src/errors';
import {flatLayers} from '../src/tfjs_layers';

/** Options of `convert`. */
export interface ConvertOptions {
  /** Of the new layers. Default 'hedgehog', which learns to mimic softmax (`training.linearize`). */
  featureMap?: FeatureMapLike;
  /** Names of the SoftmaxAttention layers to convert; the others stay. Default: all. */
  layers?: readonly string[];
}

const FN = 'models.convert';

/**
 * A copy of a model with LinearAttention in the place of SoftmaxAttention, of the same weights and the same names. The
 * model itself stays as it is. What the copy says is worse until it is trained: `training.linearize` converts, fits the
 * feature map to the softmax weights and fine-tunes.
 *
 * With `layers` only some are converted, and the model is a hybrid, which `generation.stream` runs as well.
 *
 * Dropout, which SoftmaxAttention applies to its weights, is applied to the attention output with the same rate.
 *
 * ```js
 * const model = tfla.models.transformer({
 *   vocabSize: 65, dModel: 32, numLayers: 2, numHeads: 2, attention: 'softmax',
 * });
 * const linear = tfla.models.convert(model, {featureMap: 'hedgehog'});
 * const hybrid = tfla.models.convert(model, {featureMap: 'elu', layers: ['block_0_attention']});
 * ```
 *
 * @param model Functional or sequential; nested models are converted too.
 * @returns an uncompiled model, to be disposed like any other.
 * @throws Error when there is nothing to convert, a named layer is none of them, or a causal layer would get a map that
 *   cannot be causal.
 */
export function convert(model: tfl.LayersModel, options: ConvertOptions = {}): tfl.LayersModel {
  check(
    typeof model?.apply === 'function' && Array.isArray(model.layers),
    FN,
    () => `expected model to be a tf.LayersModel; got ${show(model)}.`,
  );
  checkOptions(FN, options, ['featureMap', 'layers']);
  const map = resolveFeatureMap(options.featureMap ?? 'hedgehog', FN);
  const originals = flatLayers(model);
  const names = chosen(originals, map, options.layers);
  const config = converted(model.getConfig(), map, names);
  const cls = model.constructor as typeof tfl.LayersModel;
  const copy = cls.fromConfig(cls, config) as tfl.LayersModel;
  copyWeights(originals, flatLayers(copy));
  return copy;
}

/** Names of the layers to convert. */
function chosen(all: tfl.layers.Layer[], map: FeatureMap, given: unknown): Set<string> {
  const softmax = all.filter((layer) => layer instanceof SoftmaxAttention);
  const names = softmax.map(({name}) => name);
  check(softmax.length > 0, FN, () => 'the model has no SoftmaxAttention layer to convert.');
  check(
    given === undefined || (Array.isArray(given) && given.length > 0),
    FN,
    () => `expected layers to be an array of layer names; got ${show(given)}.`,
  );
  const wanted = (given ?? names) as string[];
  for (const name of wanted) {
    check(
      names.includes(name),
      FN,
      () =>
        `expected layers to name SoftmaxAttention layers (${names.map((n) => `'${n}'`).join(', ')}); got ${show(name)}.`,
    );
  }
  for (const {name, options} of softmax) {
    check(
      !wanted.includes(name) || !options.causal || map.causal !== false,
      FN,
      () => `feature map '${map.name}' cannot be causal, and layer '${name}' is.`,
    );
  }
  return new Set(wanted);
}

interface LayerEntry {
  name: string;
  className: string;
  config: tf.serialization.ConfigDict;
}

/** A model's configuration with the classes and arguments of the layers changed, nested models' too. */
function converted(
  config: tf.serialization.ConfigDict,
  map: FeatureMap,
  names: Set<string>,
): tf.serialization.ConfigDict {
  if (!Array.isArray(config['layers'])) {
    return config;
  }
  const layers = (config['layers'] as object[] as LayerEntry[]).map((entry) => {
    const name = entry.config['name'] as string;
    return entry.className === SoftmaxAttention.className && names.has(name)
      ? {
          ...entry,
          className: LinearAttention.className,
          config: {...entry.config, featureMap: map as object as tf.serialization.ConfigDict},
        }
      : {...entry, config: converted(entry.config, map, names)};
  });
  return {...config, layers: layers as object as tf.serialization.ConfigDictArray};
}

/** The weights that both have; a feature map's own come after them. */
function copyWeights(from: tfl.layers.Layer[], to: tfl.layers.Layer[]): void {
  from.forEach(({weights}, i) => {
    weights.forEach((weight, j) => {
      to[i].weights[j].write(weight.read());
    });
  });
}
