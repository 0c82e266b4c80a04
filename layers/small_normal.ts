import {seedOfName} from '../src/random';
import type {Identifier, Initializer} from './identifiers';

/** Initial embeddings: normal with standard deviation 0.02, as in GPT-2. The seed is never 0, tfjs's "no seed". */
export function smallNormal(layerName: string): Identifier<Initializer> {
  return {
    className: 'RandomNormal',
    config: {mean: 0, stddev: 0.02, seed: 1 + (seedOfName(layerName) >>> 1)},
  };
}
