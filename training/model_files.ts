import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, loadLayersModel} from '@tensorflow/tfjs-layers';
import {check, fail, show} from '../src/errors';
import {readFileIfAny, writeFilesAtomically} from './atomic_file';
import {crc32} from './crc32';
import {nodeBuiltin} from './node_builtin';
import {isObject, parseJson} from './safe_json';

const MODEL = 'model.json';
const WEIGHTS = 'weights.bin';
/** In model.json's user-defined metadata: CRC-32 of the weights, so that a mixed or damaged pair is found. */
const CHECKSUM = 'weightsCrc32';
const MAX_RANK = 8;

/** Bytes of one element by dtype, or by the dtype that a quantized weight is stored as. */
const ELEMENT_BYTES: {[dtype: string]: number} = {
  float32: 4,
  int32: 4,
  bool: 1,
  float16: 2,
  uint16: 2,
  uint8: 1,
};

/**
 * Saves a model into a folder as `model.json` and `weights.bin`, tfjs's own format: a page loads it with
 * `tf.loadLayersModel(url)`. Works in Node without tfjs-node. Both files are written whole or not at all; what was there
 * stays when something fails. The folder is made when it is missing.
 *
 * ```js
 * await training.saveModel(model, 'my-model');
 * const same = await training.loadModel('my-model');
 * ```
 */
export async function saveModel(model: LayersModel, folder: string): Promise<void> {
  const fn = 'training.saveModel';
  check(
    typeof model?.save === 'function',
    fn,
    () => `expected model to be a tf.LayersModel; got ${show(model)}.`,
  );
  checkFolder(fn, folder);
  const {join} = nodeBuiltin(fn, 'saving to a folder', 'node:path');
  await model.save(
    tf.io.withSaveHandler(async (artifacts) => {
      const weights = new Uint8Array(tf.io.concatenateArrayBuffers(artifacts.weightData ?? []));
      const json = {
        modelTopology: artifacts.modelTopology,
        format: artifacts.format,
        generatedBy: artifacts.generatedBy,
        convertedBy: artifacts.convertedBy,
        weightsManifest: [{paths: [WEIGHTS], weights: artifacts.weightSpecs ?? []}],
        userDefinedMetadata: {...artifacts.userDefinedMetadata, [CHECKSUM]: crc32(weights)},
      };
      writeFilesAtomically(fn, [
        {path: join(folder, WEIGHTS), bytes: weights},
        {path: join(folder, MODEL), bytes: new TextEncoder().encode(JSON.stringify(json))},
      ]);
      const modelArtifactsInfo = {dateSaved: new Date(), modelTopologyType: 'JSON' as const};
      return {modelArtifactsInfo};
    }),
  );
}

/**
 * Loads a model from a folder in tfjs's layers format, written by `saveModel` or by tfjs itself. Own layer classes must
 * have been imported. The files are checked before anything is made of them.
 *
 * @throws Error that names the file and what is wrong with it.
 */
export async function loadModel(folder: string): Promise<LayersModel> {
  const fn = 'training.loadModel';
  checkFolder(fn, folder);
  const {join} = nodeBuiltin(fn, 'loading from a folder', 'node:path');
  const what = `'${join(folder, MODEL)}'`;
  const bytes = readFileIfAny(fn, join(folder, MODEL));
  if (bytes === null) {
    fail(fn, `there is no model in '${folder}': it has no ${MODEL}.`);
  }
  const json = parseJson(fn, what, new TextDecoder().decode(bytes));
  if (!isObject(json) || !isObject(json['modelTopology'])) {
    fail(fn, `${what} is not a model in tfjs's layers format.`);
  }
  const {paths, specs} = readManifest(fn, what, json['weightsManifest']);
  const parts = paths.map((path) => {
    const part = readFileIfAny(fn, join(folder, path));
    return part ?? fail(fn, `${what} names the file '${path}', which is missing.`);
  });
  const weights = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => {
    weights.set(part, at);
    return at + part.length;
  }, 0);
  const expected = specs.reduce((sum, spec) => sum + byteLength(spec), 0);
  if (weights.length !== expected) {
    fail(fn, `${what} describes ${expected} bytes of weights; ${paths.join(', ')} has ${weights.length}.`);
  }
  const metadata = json['userDefinedMetadata'];
  const checksum = isObject(metadata) ? metadata[CHECKSUM] : undefined;
  if (checksum !== undefined && checksum !== crc32(weights)) {
    fail(fn, `${paths.join(', ')} in '${folder}' is damaged, or is not of the same save as ${MODEL}.`);
  }
  try {
    return await loadLayersModel(
      tf.io.fromMemory({
        modelTopology: json['modelTopology'],
        weightSpecs: specs,
        weightData: weights.buffer,
        ...(isObject(metadata) ? {userDefinedMetadata: metadata as {[key: string]: object}} : {}),
      }),
    );
  } catch (error) {
    fail(fn, `tfjs could not make the model of '${folder}': ${(error as Error).message}`);
  }
}

function checkFolder(fn: string, folder: unknown): void {
  check(
    typeof folder === 'string' && folder !== '',
    fn,
    () => `expected folder to be the path of a folder; got ${show(folder)}.`,
  );
}

/** The files and weights of a manifest: plain file names, each weight once, dtypes and shapes that can be. */
function readManifest(
  fn: string,
  what: string,
  manifest: unknown,
): {paths: string[]; specs: tf.io.WeightsManifestEntry[]} {
  const need: (ok: boolean, why: string) => asserts ok = (ok, why) => {
    if (!ok) {
      fail(fn, `${what} cannot be used: ${why}.`);
    }
  };
  need(Array.isArray(manifest), 'it has no weightsManifest');
  const paths: string[] = [];
  const specs: tf.io.WeightsManifestEntry[] = [];
  const names = new Set<string>();
  for (const group of manifest) {
    need(
      isObject(group) && Array.isArray(group['paths']) && Array.isArray(group['weights']),
      'a group of its weightsManifest lacks paths or weights',
    );
    for (const path of group['paths']) {
      const plain = typeof path === 'string' && /^[\w][\w.-]*$/.test(path) && !paths.includes(path);
      need(plain, `it names the weights file ${show(path)}, which is not a plain file name`);
      paths.push(path);
    }
    for (const spec of group['weights']) {
      need(isObject(spec) && typeof spec['name'] === 'string', 'a weight has no name');
      const {name, shape, dtype, quantization} = spec;
      need(!names.has(name as string), `two weights are called '${name}'`);
      names.add(name as string);
      need(
        dtype === 'float32' || dtype === 'int32' || dtype === 'bool',
        `'${name}' has dtype ${show(dtype)}`,
      );
      need(
        Array.isArray(shape) &&
          shape.length <= MAX_RANK &&
          shape.every((size) => Number.isSafeInteger(size) && size >= 0 && size < 2 ** 31),
        `'${name}' has shape ${show(shape)}`,
      );
      need(
        quantization === undefined ||
          (isObject(quantization) &&
            ['uint8', 'uint16', 'float16'].includes(quantization['dtype'] as string)),
        `'${name}' is quantized in an unknown way`,
      );
      specs.push(spec as object as tf.io.WeightsManifestEntry);
    }
  }
  return {paths, specs};
}

function byteLength({shape, dtype, quantization}: tf.io.WeightsManifestEntry): number {
  return shape.reduce((a, b) => a * b, 1) * ELEMENT_BYTES[quantization?.dtype ?? dtype];
}
