import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {fail, show, showShape} from '../src/errors';
import type {AdamW} from './adam_w';
import {isObject} from './safe_json';
import {decodeTensorFile, encodeTensorFile, type SavedTensor, savedTensor} from './tensor_file';

/**
 * What decides which tokens and which dropout masks a step gets. A run can be continued only with the same: everything
 * random is a function of these and of the step number.
 */
export interface RunIdentity {
  seed: number;
  batchSize: number;
  length: number;
  accumulate: number;
  /** Number of training tokens, and their CRC-32. */
  dataLength: number;
  dataChecksum: number;
}

/** A checkpoint that was read and checked, not yet applied. */
export interface Checkpoint {
  /** Updates done. */
  step: number;
  run: RunIdentity;
  weights: SavedTensor[];
  /** Index of the trainable variable, and its slots. */
  slots: {index: number; m: SavedTensor; v: SavedTensor}[];
}

const IDENTITY: readonly (keyof RunIdentity)[] = [
  'seed',
  'batchSize',
  'length',
  'accumulate',
  'dataLength',
  'dataChecksum',
];

/** The state of a run after `step` updates, as the bytes of a file. */
export async function encodeCheckpoint(
  model: LayersModel,
  optimizer: AdamW,
  variables: readonly tf.Variable[],
  step: number,
  run: RunIdentity,
): Promise<Uint8Array> {
  const tensors: SavedTensor[] = [];
  for (const [index, weight] of model.weights.entries()) {
    const tensor = weight.read();
    tensors.push(
      savedTensor(`weight/${index}/${weight.name}`, tensor.shape, await tensor.data(), tensor.dtype),
    );
  }
  for (const [index, variable] of variables.entries()) {
    const slots = optimizer.slotsFor(variable);
    if (slots !== null) {
      tensors.push(savedTensor(`m/${index}`, slots.m.shape, await slots.m.data(), 'float32'));
      tensors.push(savedTensor(`v/${index}`, slots.v.shape, await slots.v.data(), 'float32'));
    }
  }
  return encodeTensorFile({record: {step, run, weights: model.weights.length}, tensors});
}

/** Reads and checks a checkpoint. Nothing is changed, whatever is wrong with it. */
export function decodeCheckpoint(fn: string, what: string, bytes: Uint8Array): Checkpoint {
  const {record, tensors} = decodeTensorFile(fn, what, bytes);
  const bad = (why: string): never => fail(fn, `${what} cannot be used: ${why}.`);
  if (!isObject(record) || !isObject(record['run'])) {
    return bad('it has no record of the run');
  }
  const {
    step,
    run,
    weights: count,
  } = record as {step: unknown; run: {[key: string]: unknown}; weights: unknown};
  if (!Number.isSafeInteger(step) || (step as number) < 0) {
    return bad(`its step is ${show(step)}`);
  }
  for (const key of IDENTITY) {
    if (typeof run[key] !== 'number' || !Number.isFinite(run[key])) {
      return bad(`its ${key} is ${show(run[key])}`);
    }
  }
  if (!Number.isSafeInteger(count) || (count as number) < 0 || (count as number) > tensors.length) {
    return bad(`it claims ${show(count)} weights and holds ${tensors.length} tensors`);
  }
  const weights = tensors.slice(0, count as number);
  if (!weights.every(({name}, index) => name.startsWith(`weight/${index}/`))) {
    return bad('its weights are out of order');
  }
  const rest = tensors.slice(count as number);
  if (rest.length % 2 !== 0) {
    return bad('an optimizer slot is missing');
  }
  let last = -1;
  const slots = Array.from({length: rest.length / 2}, (_, pair) => {
    const [m, v] = [rest[2 * pair], rest[2 * pair + 1]];
    const index = Number(/^m\/(\d{1,9})$/.exec(m.name)?.[1] ?? Number.NaN);
    const good =
      index > last &&
      v.name === `v/${index}` &&
      m.dtype === 'float32' &&
      v.dtype === 'float32' &&
      showShape(m.shape) === showShape(v.shape);
    if (!good) {
      return bad(`'${m.name}' and '${v.name}' are not a pair of optimizer slots`);
    }
    last = index;
    return {index, m, v};
  });
  const identity = Object.fromEntries(IDENTITY.map((key) => [key, run[key]]));
  return {step: step as number, run: identity as {[K in keyof RunIdentity]: number}, weights, slots};
}

/** Refuses a checkpoint of another run or another model. */
export function checkFits(
  fn: string,
  what: string,
  checkpoint: Checkpoint,
  model: LayersModel,
  variables: readonly tf.Variable[],
  run: RunIdentity,
): void {
  for (const key of IDENTITY) {
    if (checkpoint.run[key] !== run[key]) {
      const name =
        key === 'dataChecksum' ? 'the training data' : key === 'dataLength' ? 'the number of tokens' : key;
      fail(
        fn,
        `${what} is of a run with another ${name.replace(/^the /, '')} (${checkpoint.run[key]}, now ${run[key]}); ` +
          'a run is continued with the data, seed, batchSize, length and accumulate it was started with.',
      );
    }
  }
  if (checkpoint.weights.length !== model.weights.length) {
    fail(fn, `${what} holds ${checkpoint.weights.length} weights, the model has ${model.weights.length}.`);
  }
  model.weights.forEach((weight, i) => {
    const {name, shape, dtype} = checkpoint.weights[i];
    const sameKind = (dtype === 'float32') === (weight.dtype === 'float32');
    if (showShape(shape) !== showShape(weight.shape) || !sameKind) {
      fail(
        fn,
        `${what} holds '${name}' (${dtype} ${showShape(shape)}) where the model has '${weight.name}' (${weight.dtype} ` +
          `${showShape(weight.shape)}): it is of another model.`,
      );
    }
  });
  for (const {index, m} of checkpoint.slots) {
    if (variables[index] === undefined || showShape(m.shape) !== showShape(variables[index].shape)) {
      fail(
        fn,
        `${what} holds optimizer slots of shape ${showShape(m.shape)} for weight ${index}, which does not fit.`,
      );
    }
  }
}

/** Sets weights, slots and the number of updates. `checkFits` must have accepted the checkpoint. */
export async function applyCheckpoint(
  checkpoint: Checkpoint,
  model: LayersModel,
  optimizer: AdamW,
  variables: readonly tf.Variable[],
): Promise<void> {
  tf.tidy(() => {
    model.setWeights(
      checkpoint.weights.map(({values, shape, dtype}, i) =>
        tf.cast(tf.tensor(values, shape, dtype), model.weights[i].dtype),
      ),
    );
  });
  optimizer.restore(
    checkpoint.step,
    checkpoint.slots.map(({index, m, v}) => ({variable: variables[index], m: m.values, v: v.values})),
  );
}
