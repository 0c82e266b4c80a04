/** Layers in tests: models saved and loaded in memory, predictions, reproducible inputs. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';

/** The model as it comes back from model.save and tf.loadLayersModel. */
export async function saveAndLoad(model: tfl.LayersModel): Promise<tfl.LayersModel> {
  const saved: {artifacts?: tf.io.ModelArtifacts} = {};
  await model.save(
    tf.io.withSaveHandler(async (artifacts) => {
      // Through text, as a file would be: what JSON cannot hold is lost here too.
      saved.artifacts = {...artifacts, modelTopology: JSON.parse(JSON.stringify(artifacts.modelTopology))};
      return {modelArtifactsInfo: {dateSaved: new Date(0), modelTopologyType: 'JSON'}};
    }),
  );
  return tfl.loadLayersModel(tf.io.fromMemory(saved.artifacts as tf.io.ModelArtifacts));
}

/** Values of model.predict; its tensor is disposed. */
export function predict(model: tfl.LayersModel, inputs: tf.Tensor | tf.Tensor[]): Float32Array {
  const output = model.predict(inputs) as tf.Tensor;
  const values = output.dataSync() as Float32Array;
  output.dispose();
  return values;
}

/** Reproducible values around 0. */
export function values(shape: number[], seed: number): tf.Tensor {
  return tf.randomUniform(shape, -1, 1, 'float32', `values ${seed}`);
}
