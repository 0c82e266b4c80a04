/** The character GPT of the training benchmarks, ours and its weights. */
import {normal, tf, tfla} from './ours.mjs';

export const GPT = {vocab: 65, dModel: 128, layers: 4, heads: 4};
export const ADAM = {learningRate: 1e-3, beta1: 0.9, beta2: 0.95, epsilon: 1e-8};

/** @param attention 'linear' or 'softmax' */
export function ourModel(attention, length) {
  return tfla.models.transformer({
    vocabSize: GPT.vocab,
    dModel: GPT.dModel,
    numLayers: GPT.layers,
    numHeads: GPT.heads,
    attention,
    position: 'learned',
    maxLength: length,
    activation: 'geluTanh',
    seed: 1,
  });
}

/** {name: {values, shape}} */
export const weightsOf = (model) =>
  Object.fromEntries(
    model.weights.map((weight) => [
      weight.originalName,
      {values: weight.read().dataSync().slice(), shape: weight.shape},
    ]),
  );

/** A training step by the package's public parts; gives the loss. */
export function ourGpt(model) {
  const optimizer = tfla.training.adamW({...ADAM, weightDecay: 0});
  const variables = model.trainableWeights.map((weight) => weight.read());
  return {
    step(ids, targets) {
      const cost = tf.tidy(() =>
        optimizer.minimize(
          () => tfla.training.tokenLoss(targets, model.apply(ids, {training: true})),
          true,
          variables,
        ),
      );
      const loss = cost.dataSync()[0];
      cost.dispose();
      return loss;
    },
    dispose() {
      optimizer.dispose();
      model.dispose();
    },
  };
}

/** Patches on and off around a contender's turn; by default both that the command line applies. */
export function patchSwitch(names = ['wasmTraining', 'wasmMatMul']) {
  let undo = [];
  return {
    before: () => {
      undo = names.map((name) => tfla.patches[name]());
    },
    after: () => {
      for (const f of undo.reverse()) f();
    },
  };
}

/** Random batches, as typed arrays and as int32 tensors [B,T]. */
export function batches(B, T, count = 4) {
  return Array.from({length: count}, (_, i) => {
    const ids = Int32Array.from(
      normal(B * (T + 1), 100 + i),
      (x) => Math.floor(Math.abs(x) * 1e4) % GPT.vocab,
    );
    const window = (offset) => {
      const values = new Int32Array(B * T);
      for (let b = 0; b < B; b++)
        values.set(ids.subarray(b * (T + 1) + offset, b * (T + 1) + offset + T), b * T);
      return {values, tensor: tf.tensor2d(values, [B, T], 'int32')};
    };
    return {inputs: window(0), targets: window(1)};
  });
}
