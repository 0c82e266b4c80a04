/** What warmup runs: each task is synchronous and returns tensors whose values must have been read when it is done. */
import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {type FeatureMapLike, linearAttention, linearAttentionStep} from '../ops';
import {addAll} from '../src/add_all';
import {wasmTraining} from '../src/patches/wasm_training';
import {trainableVariables} from '../src/tfjs';
import {stream} from './stream';

/** What a model will be used for. */
export type WarmupUse = 'predict' | 'stream' | 'train';

/** Sizes of linearAttention calls. */
export interface WarmupShapes {
  /** Default 1. */
  batchSize?: number;
  /** Default 1. */
  numHeads?: number;
  /** Tokens of queries, and of keys unless `keyLength` says otherwise. Default 16; programs serve every length. */
  length?: number;
  keyLength?: number;
  /** Feature dimension of q and k. */
  keyDim: number;
  /** Default keyDim. */
  valueDim?: number;
  /** Default false. */
  causal?: boolean;
  featureMap?: FeatureMapLike;
  normalize?: boolean;
  dataFormat?: 'BHND' | 'BNHD';
}

export interface Task {
  use: WarmupUse;
  run(): tf.Tensor[];
}

export function tasksOfShapes(shapes: WarmupShapes, uses: readonly WarmupUse[]): Task[] {
  const {batchSize: B = 1, numHeads: H = 1, length = 16, keyLength = length, keyDim, causal = false} = shapes;
  const {valueDim = keyDim, featureMap, normalize, dataFormat = 'BHND'} = shapes;
  const make = (N: number, width: number): tf.Tensor =>
    tf.zeros(dataFormat === 'BHND' ? [B, H, N, width] : [B, N, H, width]);
  const inputs = () => [make(length, keyDim), make(keyLength, keyDim), make(keyLength, valueDim)];
  const given = {
    ...(featureMap === undefined ? {} : {featureMap}),
    ...(normalize === undefined ? {} : {normalize}),
  };
  const attend = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) =>
    linearAttention(q, k, v, {...given, causal, dataFormat});
  const all: {[use in WarmupUse]: () => tf.Tensor[]} = {
    predict: () => {
      const [q, k, v] = inputs();
      return [attend(q, k, v)];
    },
    stream: () => {
      const [q, k, v] = inputs();
      const {output, state} = linearAttention(q, k, v, {...given, causal, dataFormat, returnState: true});
      const token = (width: number) => tf.zeros([B, H, width]);
      const next = linearAttentionStep(token(keyDim), token(keyDim), token(valueDim), state, given);
      return [output, next.output];
    },
    train: () => tf.grads(attend as (...xs: tf.Tensor[]) => tf.Tensor)(inputs()),
  };
  return uses.filter((use) => use !== 'stream' || causal).map((use) => ({use, run: all[use]}));
}

/** `optional`: a model that cannot be read token by token has no such task, instead of throwing. */
export function tasksOfModel(
  model: tfl.LayersModel,
  uses: readonly WarmupUse[],
  {batchSize, length, optional}: {batchSize: number; length: number; optional: boolean},
): Task[] {
  const inputs = () =>
    model.inputs.map(({shape, dtype}) =>
      tf.zeros(
        shape.map((size, axis) => size ?? (axis === 0 ? batchSize : length)),
        dtype,
      ),
    );
  const all: {[use in WarmupUse]: () => tf.Tensor[]} = {
    predict: () => [model.predict(inputs(), {batchSize})].flat(),
    stream: () => {
      const reading = stream(model, {batchSize});
      try {
        const inputDim = model.inputs[0].shape[2];
        const tokens = (N: number): tf.Tensor =>
          inputDim == null ? tf.zeros([batchSize, N], 'int32') : tf.zeros([batchSize, N, inputDim]);
        return [reading.prefill(tokens(length)), reading.step(tokens(1))];
      } finally {
        reading.dispose();
      }
    },
    train: () => {
      // As training.train does: without it tfjs cannot differentiate some layers on wasm.
      wasmTraining();
      const loss = () =>
        addAll([model.apply(inputs(), {training: true})].flat().map((y) => tf.mean(y as tf.Tensor)));
      const {value, grads} = tf.variableGrads(loss as () => tf.Scalar, trainableVariables(model));
      return [value, ...Object.values(grads)];
    },
  };
  const wanted = uses.filter((use) => use !== 'stream' || !optional || canStream(model, batchSize));
  return wanted.map((use) => ({use, run: all[use]}));
}

function canStream(model: tfl.LayersModel, batchSize: number): boolean {
  try {
    stream(model, {batchSize}).dispose();
    return true;
  } catch {
    return false;
  }
}
