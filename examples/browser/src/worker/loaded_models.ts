/** The model of each side: kept as files, and made anew on each backend. */
import * as tf from '@tensorflow/tfjs-core';
import {type LayersModel, loadLayersModel} from '@tensorflow/tfjs-layers';
import {models, warmup} from 'tfjs-linear-attention';
import {fetchModel} from './fetch_model';
import {factsOf} from './model_facts';
import {type ModelFacts, type ModelFiles, SIDES, type Side} from './protocol';

export interface Loaded {
  files: ModelFiles;
  tokenizer: models.CharacterTokenizer;
  model: LayersModel;
  facts: ModelFacts;
}

type Compiled = {event: 'compiled'; done: number; total: number};

const loaded = new Map<Side, Loaded>();

export function loadedOn(side: Side): Loaded {
  const found = loaded.get(side);
  if (found === undefined) throw new Error(`No ${side} model is loaded.`);
  return found;
}

/** From the folder that the command line wrote, by its address, or from files. */
export async function loadModelOn(
  side: Side,
  from: string | ModelFiles,
  emit: (event: Compiled) => void,
): Promise<ModelFacts> {
  const files = typeof from === 'string' ? await fetchModel(from) : from;
  const next = await make(files, emit);
  loaded.get(side)?.model.dispose();
  loaded.set(side, next);
  return next.facts;
}

/** Makes the models on the backend that is current now. */
export async function moveModels(emit: (event: Compiled) => void): Promise<void> {
  for (const side of SIDES) {
    const before = loaded.get(side);
    if (before !== undefined) {
      before.model.dispose();
      loaded.set(side, await make(before.files, emit));
    }
  }
}

async function make(files: ModelFiles, emit: (event: Compiled) => void): Promise<Loaded> {
  const json = files.tokenizer as models.CharacterTokenizerJSON;
  // What the model does not know is left out of a prompt, not an error.
  const tokenizer = models.characterTokenizerFromJSON({...json, unknown: 'skip'});
  const model = await loadLayersModel(tf.io.fromMemory(files.artifacts));
  const facts = factsOf(model, tokenizer.vocabSize);
  // Compiles shaders on webgl and webgpu, so that the first token does not wait for them.
  await warmup(model, {
    uses: ['stream'],
    onProgress: ({phase, done, total}) => phase === 'compile' && emit({event: 'compiled', done, total}),
  });
  return {files, tokenizer, model, facts};
}
