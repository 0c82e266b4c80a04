/** tfjs's layers format: what is checked of a model.json before anything is made of it, wherever it comes from. */
import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, models} from '@tensorflow/tfjs-layers';
import {fail, show} from '../src/errors';
import {collectVariables, withZeroWeights} from '../src/tfjs';
import {crc32} from './crc32';
import {QUANTIZATIONS, type Quantization} from './quantize';
import {isObject, parseJson} from './safe_json';

export const MODEL = 'model.json';
export const WEIGHTS = 'weights.bin';
/** In model.json's user-defined metadata: CRC-32 of the weights, so that a mixed or damaged pair is found. */
export const CHECKSUM = 'weightsCrc32';
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

/** A model.json that was read and checked. */
export interface ModelFile {
  /** How errors call it. */
  what: string;
  topology: object;
  /** The plain names of the files with the weights. */
  paths: string[];
  specs: tf.io.WeightsManifestEntry[];
  /** Bytes of all weights. */
  size: number;
  /** CRC-32 of the weights, if it is known. */
  checksum: unknown;
  metadata: {[key: string]: object} | undefined;
}

/** Reads a model.json. @throws Error that names it and what is wrong with it. */
export function readModelFile(fn: string, what: string, bytes: Uint8Array): ModelFile {
  const json = parseJson(fn, what, new TextDecoder().decode(bytes));
  if (!isObject(json) || !isObject(json['modelTopology'])) {
    fail(fn, `${what} is not a model in tfjs's layers format.`);
  }
  const {paths, specs} = readManifest(fn, what, json['weightsManifest']);
  const metadata = json['userDefinedMetadata'];
  return {
    what,
    topology: json['modelTopology'],
    paths,
    specs,
    size: specs.reduce((sum, spec) => sum + byteLength(spec), 0),
    checksum: isObject(metadata) ? metadata[CHECKSUM] : undefined,
    metadata: isObject(metadata) ? (metadata as {[key: string]: object}) : undefined,
  };
}

/** Null where the files' contents are the weights of the model; else what is wrong with them. */
export function whyNotWeights({what, paths, size, checksum}: ModelFile, weights: Uint8Array): string | null {
  if (weights.length !== size) {
    const files = paths.join(', ') || 'it names no file and';
    return `${what} describes ${size} bytes of weights; ${files} has ${weights.length}.`;
  }
  return checksum !== undefined && checksum !== crc32(weights)
    ? `${paths.join(', ')} is damaged, or is not of the same save as ${what}.`
    : null;
}

/** Makes the model of checked files. Leaves no tensor behind where tfjs refuses them. */
export async function makeModel(
  fn: string,
  {what, topology, specs, metadata}: ModelFile,
  weights: Uint8Array<ArrayBuffer>,
): Promise<LayersModel> {
  const root = ((topology as {model_config?: object}).model_config ?? topology) as {class_name?: unknown};
  // Without weights to fetch the promise is settled when modelFromJSON returns.
  const {result: building, discard} = collectVariables(() =>
    withZeroWeights(root.class_name, () =>
      models.modelFromJSON({modelTopology: topology} as tf.io.ModelJSON),
    ),
  );
  try {
    const model = await building;
    tf.tidy(() => {
      const tensors = tf.io.decodeWeights(weights.buffer, specs);
      const own = specs.filter(({group}) => group !== 'optimizer');
      model.loadWeights(Object.fromEntries(own.map(({name}) => [name, tensors[name]])));
    });
    if (metadata !== undefined) {
      model.setUserDefinedMetadata(metadata);
    }
    return model;
  } catch (error) {
    discard();
    fail(fn, `tfjs could not make the model of ${what}: ${(error as Error).message}`);
  }
}

/** The parts, one after the other. */
export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
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
        quantization === undefined || isQuantization(quantization),
        `'${name}' is quantized in an unknown way`,
      );
      specs.push(spec as object as tf.io.WeightsManifestEntry);
    }
  }
  return {paths, specs};
}

function isQuantization(given: unknown): boolean {
  if (!isObject(given) || !QUANTIZATIONS.includes(given['dtype'] as Quantization)) {
    return false;
  }
  const {dtype, scale, min} = given;
  return dtype === 'float16' || (Number.isFinite(scale) && Number.isFinite(min));
}

function byteLength({shape, dtype, quantization}: tf.io.WeightsManifestEntry): number {
  return shape.reduce((a, b) => a * b, 1) * ELEMENT_BYTES[quantization?.dtype ?? dtype];
}
