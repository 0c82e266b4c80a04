import type * as tfl from '@tensorflow/tfjs-layers';
import {check, checkInteger} from '../src/errors';
import {mixSeed} from '../src/random';
import {flatLayers} from '../src/tfjs';
import {LinearAttention} from './linear_attention';

const FN = 'layers.redrawFeatures';

/**
 * Draws the random directions of every LinearAttention layer of a model anew, in place, each layer with its own: for
 * models with the feature map 'favor', between training steps (`training.redrawSchedule` does it every so often).
 * Layers whose map has nothing random are left alone.
 *
 * ```js
 * const model = tfla.models.transformer({vocabSize: 65, dModel: 32, numLayers: 2, numHeads: 2, featureMap: 'favor'});
 * console.log(tfla.layers.redrawFeatures(model, 1)); // 2
 * ```
 *
 * @returns how many layers have new directions.
 * @throws Error for a seed that is not a whole number, or when no layer has any.
 */
export function redrawFeatures(model: tfl.LayersModel, seed: number): number {
  checkInteger(FN, 'seed', seed, Number.MIN_SAFE_INTEGER);
  const layers = redrawable(model);
  check(layers.length > 0, FN, () => 'the model has no LinearAttention layer with a random feature map.');
  layers.forEach((layer, index) => {
    layer.redraw(mixSeed(seed, index));
  });
  return layers.length;
}

/** The layers of a model whose map has random directions, each once. */
export const redrawable = (model: tfl.LayersModel): LinearAttention[] =>
  [...new Set(flatLayers(model))]
    .filter((layer) => layer instanceof LinearAttention)
    .filter(({featureMap}) => featureMap.redraw !== undefined);
