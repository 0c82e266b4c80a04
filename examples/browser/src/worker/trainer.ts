/** Training on a text, with all that is needed to go on later. */
import * as tf from '@tensorflow/tfjs-core';
import type {LayersModel} from '@tensorflow/tfjs-layers';
import {models, patches, training} from 'tfjs-linear-attention';
import type {EventOf, ModelFiles, Request, Run} from './protocol';
import {freshSignal} from './stop_signal';

/** Part of the text, at its end, that is measured on and not trained on. */
const VALIDATION = 0.05;

export async function train(
  {text, options, steps, from}: Request<'train'>,
  emit: (event: EventOf<'train'>) => void,
): Promise<Run> {
  const signal = freshSignal();
  if (from !== null && from.text !== text) {
    throw new Error('A run is continued on the text it was started with.');
  }
  patches.wasmMatMul();
  const tokenizer = models.characterTokenizer(text);
  const ids = tokenizer.encode(text);
  const {attention, dModel, layers: numLayers, heads: numHeads, seed} = options;
  const model = models.transformer({
    ...{vocabSize: tokenizer.vocabSize, dModel, numLayers, numHeads, attention, seed},
    // These features stay moderate however far the text goes beyond the length trained on; exp's grow to their limit.
    ...(attention === 'linear' && {featureMap: 'squaredRelu'}),
  });
  try {
    let checkpoint = from?.checkpoint ?? null;
    const before = from?.step ?? 0;
    const losses = [...(from?.losses ?? [])];
    const windows = Math.floor((ids.length * VALIDATION) / (options.length + 1));
    const result = await training.train(model, ids, {
      ...{steps: before + steps, seed, signal},
      batchSize: options.batch,
      length: options.length,
      learningRate: options.learningRate,
      // Short texts have no window to spare.
      ...(windows > 0 && {validation: VALIDATION}),
      every: Math.max(10, Math.ceil(steps / 5)),
      checkpoint: {
        save(bytes) {
          checkpoint = bytes;
        },
        load: () => checkpoint,
      },
      resume: from !== null,
      onProgress({step, steps: all, loss, validation, tokensPerSecond, secondsLeft}) {
        losses.push(loss);
        emit({
          ...{event: 'step', step, steps: all, loss, secondsLeft},
          validation: validation?.loss ?? null,
          charactersPerSecond: tokensPerSecond,
        });
      },
    });
    if (checkpoint === null) throw new Error('Stopped before the first step.');
    const files = await filesOf(model, tokenizer);
    return {options, text, step: result.step, losses, files, checkpoint};
  } finally {
    model.dispose();
  }
}

async function filesOf(model: LayersModel, tokenizer: models.CharacterTokenizer): Promise<ModelFiles> {
  let artifacts: tf.io.ModelArtifacts | undefined;
  await model.save(
    tf.io.withSaveHandler(async (made) => {
      artifacts = {...made, weightData: tf.io.concatenateArrayBuffers(made.weightData ?? [])};
      return {modelArtifactsInfo: {dateSaved: new Date(), modelTopologyType: 'JSON'}};
    }),
  );
  return {artifacts: artifacts!, tokenizer: tokenizer.toJSON()};
}
