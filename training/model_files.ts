import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {check, checkOneOf, checkOptions, fail, show} from '../src/errors';
import {readFileIfAny, writeFilesAtomically} from './atomic_file';
import {crc32} from './crc32';
import {CHECKSUM, joined, MODEL, makeModel, readModelFile, WEIGHTS, whyNotWeights} from './model_format';
import {nodeBuiltin} from './node_builtin';
import {QUANTIZATIONS, type Quantization, quantizeWeights} from './quantize';

/** Options of `saveModel`. */
export interface SaveModelOptions {
  /**
   * Store the weights of rank 2 or more in fewer bytes, in tfjs's own forms: 'float16' and 'uint16' in 2 bytes, 'uint8' in
   * 1. What is loaded is float32 again, with rounded values; benchmarks/results/quantization.md has what that costs.
   * Default: float32, exact.
   */
  quantize?: Quantization;
}

/**
 * Saves a model into a folder as `model.json` and `weights.bin`, tfjs's own format: a page loads it with
 * `tf.loadLayersModel(url)`. Works in Node without tfjs-node. Both files are written whole or not at all; what was there
 * stays when something fails. The folder is made when it is missing.
 *
 * ```js
 * await training.saveModel(model, 'my-model');
 * const same = await training.loadModel('my-model');
 * await training.saveModel(model, 'my-small-model', {quantize: 'float16'});
 * ```
 *
 * @throws Error for wrong arguments, for what cannot be written, and for weights that cannot be quantized (NaN, Infinity).
 */
export async function saveModel(
  model: LayersModel,
  folder: string,
  options: SaveModelOptions = {},
): Promise<void> {
  const fn = 'training.saveModel';
  check(
    typeof model?.save === 'function',
    fn,
    () => `expected model to be a tf.LayersModel; got ${show(model)}.`,
  );
  checkFolder(fn, folder);
  checkOptions(fn, options, ['quantize']);
  const {quantize} = options;
  if (quantize !== undefined) {
    checkOneOf(fn, 'quantize', quantize, QUANTIZATIONS);
  }
  const {join} = nodeBuiltin(fn, 'saving to a folder', 'node:path');
  await model.save(
    tf.io.withSaveHandler(async (artifacts) => {
      const data = tf.io.concatenateArrayBuffers(artifacts.weightData ?? []);
      const exact = {specs: artifacts.weightSpecs ?? [], bytes: new Uint8Array(data)};
      const {specs, bytes} =
        quantize === undefined ? exact : quantizeWeights(fn, exact.specs, data, quantize);
      const json = {
        modelTopology: artifacts.modelTopology,
        format: artifacts.format,
        generatedBy: artifacts.generatedBy,
        convertedBy: artifacts.convertedBy,
        weightsManifest: [{paths: [WEIGHTS], weights: specs}],
        userDefinedMetadata: {...artifacts.userDefinedMetadata, [CHECKSUM]: crc32(bytes)},
      };
      writeFilesAtomically(fn, [
        {path: join(folder, WEIGHTS), bytes},
        {path: join(folder, MODEL), bytes: new TextEncoder().encode(JSON.stringify(json))},
      ]);
      const modelArtifactsInfo = {dateSaved: new Date(), modelTopologyType: 'JSON' as const};
      return {modelArtifactsInfo};
    }),
  );
}

/**
 * Loads a model from a folder in tfjs's layers format, written by `saveModel` or by tfjs itself, quantized or not. Own
 * layer classes must have been imported. The files are checked before anything is made of them.
 *
 * ```js
 * const model = await training.loadModel('my-model');
 * ```
 *
 * @throws Error that names the file and what is wrong with it; no tensor is left behind.
 */
export async function loadModel(folder: string): Promise<LayersModel> {
  const fn = 'training.loadModel';
  checkFolder(fn, folder);
  const {join} = nodeBuiltin(fn, 'loading from a folder', 'node:path');
  const bytes = readFileIfAny(fn, join(folder, MODEL));
  if (bytes === null) {
    fail(fn, `there is no model in '${folder}': it has no ${MODEL}.`);
  }
  const file = readModelFile(fn, `'${join(folder, MODEL)}'`, bytes);
  const weights = joined(
    file.paths.map((path) => {
      const part = readFileIfAny(fn, join(folder, path));
      return part ?? fail(fn, `${file.what} names the file '${path}', which is missing.`);
    }),
  );
  const why = whyNotWeights(file, weights);
  if (why !== null) {
    fail(fn, why);
  }
  return makeModel(fn, file, weights);
}

function checkFolder(fn: string, folder: unknown): void {
  check(
    typeof folder === 'string' && folder !== '',
    fn,
    () => `expected folder to be the path of a folder; got ${show(folder)}.`,
  );
}
