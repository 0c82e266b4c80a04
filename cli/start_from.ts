/**
 * `train --from`: training that starts from the weights of a trained model, for other lengths, another feature map or another
 * kind of attention.
 */
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {Failure} from './errors';
import {load} from './model_folder';

/** Gives the model the weights of the one in the folder, which must be of the same sizes. */
export async function startFrom(model: LayersModel, folder: string): Promise<void> {
  const source = await load(folder);
  try {
    const describe = ({weights}: LayersModel) =>
      weights.map(({name, shape}) => `${name.replace(/_\d+$/, '')} [${shape}]`);
    const [wanted, found] = [describe(model), describe(source)];
    const at = wanted.findIndex((weight, i) => weight !== found[i]);
    if (at >= 0 || wanted.length !== found.length) {
      throw new Failure(
        `--from ${folder}: its model is of another size: expected the weight ${wanted[at] ?? '(none)'}; ` +
          `got ${found[at] ?? found[wanted.length] ?? '(none)'}.`,
      );
    }
    model.setWeights(source.getWeights());
  } finally {
    source.dispose();
  }
}
