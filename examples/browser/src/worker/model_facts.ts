/** What the page says about a model. */
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {layers} from 'tfjs-linear-attention';
import type {ModelFacts} from './protocol';

const FLOAT_BYTES = 4;

export function factsOf(model: LayersModel, characters: number): ModelFacts {
  const linear = model.layers.filter((layer) => layer instanceof layers.LinearAttention);
  const softmax = model.layers.filter((layer) => layer instanceof layers.SoftmaxAttention);
  const bytesPerToken = softmax.reduce(
    (sum, {options: {numHeads, keyDim, valueDim}}) => sum + numHeads * (keyDim + valueDim) * FLOAT_BYTES,
    0,
  );
  const attention = [...linear, ...softmax];
  return {
    attention: softmax.length === 0 ? 'linear' : linear.length === 0 ? 'softmax' : 'mixed',
    parameters: model.countParams(),
    characters,
    layers: attention.length,
    heads: attention[0]?.options.numHeads ?? 0,
    featureMap: linear[0]?.featureMap.name ?? null,
    bytesPerToken,
  };
}
