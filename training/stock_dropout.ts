import type {layers as Layers, LayersModel} from '@tensorflow/tfjs-layers';
import {mixSeed} from '../src/random';

type Layer = InstanceType<typeof Layers.Layer>;

/** tfjs's dropout layers that take a seed. */
const SEEDED_CLASSES = ['Dropout', 'SpatialDropout1D'];

/**
 * Runs `f` with tfjs's own dropout layers in `model` drawing masks from `seed`, and gives them their seeds back. Without
 * this they draw from Math.random, or the same mask at every step when they have a seed.
 */
export function withStockDropoutSeeds<T>(model: LayersModel, seed: number, f: () => T): T {
  const found = dropoutLayers(model);
  const before = found.map((layer) => layer.seed);
  found.forEach((layer, i) => {
    layer.seed = mixSeed(seed, i);
  });
  try {
    return f();
  } finally {
    found.forEach((layer, i) => {
      layer.seed = before[i];
    });
  }
}

function dropoutLayers(model: LayersModel): {seed?: number}[] {
  return model.layers.flatMap((layer: Layer & {layers?: Layer[]; seed?: number}) => {
    if (Array.isArray(layer.layers)) {
      return dropoutLayers(layer as Layer as LayersModel);
    }
    return SEEDED_CLASSES.includes(layer.getClassName()) ? [layer] : [];
  });
}
