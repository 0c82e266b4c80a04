/** Small models and data that several training tests share. */
import type * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, layers, sequential} from '@tensorflow/tfjs-layers';
import {models} from '../../index';

export const VOCAB = 7;

/** A stream with structure: each token follows from its position. */
export const stream = (size: number): Int32Array =>
  Int32Array.from({length: size}, (_, i) => (i * i + 1) % VOCAB);

/** One transformer block, with dropout unless said otherwise. */
export const transformer = (dropout = 0.2, seed = 1): LayersModel =>
  models.transformer({vocabSize: VOCAB, dModel: 8, numLayers: 1, numHeads: 2, ffnDim: 8, dropout, seed});

/** Embedding and Dense: the fastest model that learns, without this package's layers. */
export function bigram(rate = 0): LayersModel {
  const model = sequential();
  model.add(layers.embedding({inputDim: VOCAB, outputDim: 6, inputShape: [null] as never}));
  if (rate > 0) {
    model.add(layers.dropout({rate}));
  }
  model.add(layers.dense({units: VOCAB}));
  return model;
}

/** Every weight's values, in order. */
export const weightsOf = (model: LayersModel): number[][] =>
  model.getWeights().map((weight: tf.Tensor) => Array.from(weight.dataSync()));

/** Gives `model` the weights of `from`. */
export const copyWeights = (model: LayersModel, from: LayersModel): LayersModel => {
  model.setWeights(from.getWeights());
  return model;
};
