import type {LayersModel} from '@tensorflow/tfjs-layers';
import {otherCopyOf} from '../layers/copies';
import {check, show, showShape} from '../src/errors';

/** What training needs to know of a model. */
export interface LanguageModelFacts {
  /** V, or null when the model leaves it open. */
  vocabSize: number | null;
  /** T, when the model takes one length only. */
  fixedLength: number | null;
}

/** Refuses what is not a model from ids [B,T] to logits [B,T,V]. */
export function checkLanguageModel(fn: string, model: LayersModel): LanguageModelFacts {
  check(
    typeof model?.apply === 'function' && Array.isArray(model.inputs) && Array.isArray(model.outputs),
    fn,
    () => `expected model to be a tf.LayersModel; got ${show(model)}.`,
  );
  const copy = otherCopyOf(model);
  check(copy === null, fn, () => copy as string);
  const [input, output] = [model.inputs[0]?.shape, model.outputs[0]?.shape];
  check(
    model.inputs.length === 1 && model.outputs.length === 1 && input.length === 2 && output.length === 3,
    fn,
    () =>
      `expected a model from ids [B,T] to logits [B,T,V]; got inputs ` +
      `${model.inputs.map(({shape}) => showShape(shape)).join(', ')} and outputs ` +
      `${model.outputs.map(({shape}) => showShape(shape)).join(', ')}.`,
  );
  const disposed = model.weights.some((weight) => {
    try {
      return weight.read().isDisposed;
    } catch {
      return true;
    }
  });
  check(!disposed, fn, () => `expected a live model; '${model.name}' was disposed.`);
  return {vocabSize: output[2], fixedLength: input[1]};
}
