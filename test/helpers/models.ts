/** Saving and loading models in memory. */
import type * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, loadLayersModel} from '@tensorflow/tfjs-layers';

/** The model after `save` and `loadLayersModel`. The topology goes through JSON, as in a file. */
export async function copyOf(model: LayersModel): Promise<LayersModel> {
  let saved: tf.io.ModelArtifacts | undefined;
  await model.save({
    save: async (artifacts) => {
      saved = {...artifacts, modelTopology: JSON.parse(JSON.stringify(artifacts.modelTopology))};
      return {modelArtifactsInfo: {dateSaved: new Date(0), modelTopologyType: 'JSON'}};
    },
  });
  return loadLayersModel({load: async () => saved as tf.io.ModelArtifacts});
}
