/** The files that the command line writes, chosen from a folder: model.json, its weights, tokenizer.json. */
import type {io} from '@tensorflow/tfjs-core';
import type {ModelFiles} from '../worker/protocol';

const MODEL = 'model.json';
const TOKENIZER = 'tokenizer.json';

/** @throws Error that says which file is missing. */
export async function readModelFolder(files: readonly File[]): Promise<ModelFiles> {
  const find = (name: string): File => {
    const found = files.find((file) => file.name === name);
    if (found === undefined) {
      throw new Error(`Choose ${MODEL}, its weights and ${TOKENIZER} together; ${name} is missing.`);
    }
    return found;
  };
  const json = JSON.parse(await find(MODEL).text()) as io.ModelJSON;
  const tokenizer: unknown = JSON.parse(await find(TOKENIZER).text());
  const groups = json.weightsManifest ?? [];
  const parts = await Promise.all(groups.flatMap(({paths}) => paths).map((path) => find(path).arrayBuffer()));
  return {
    artifacts: {
      modelTopology: json.modelTopology,
      weightSpecs: groups.flatMap(({weights}) => weights),
      weightData: await new Blob(parts).arrayBuffer(),
    },
    tokenizer,
  };
}
