/** The folder of a trained model, which generate and export read, and train starts from. */
import {existsSync, statSync} from 'node:fs';
import {join} from 'node:path';
import {loadModel} from '../training';
import {Failure} from './errors';
import {FILES} from './output_folder';

/** Explains a folder that is none. */
export function checkModelFolder(folder: string, flag = '--model'): void {
  const fail = (why: string) => new Failure(`${flag} ${folder}: ${why}`);
  if (!existsSync(folder)) throw fail('there is no such folder.');
  if (!statSync(folder).isDirectory()) throw fail('it is a file; expected the folder that train wrote.');
  if (!existsSync(join(folder, FILES.model))) {
    const unfinished = existsSync(join(folder, FILES.checkpoint));
    throw fail(
      unfinished
        ? `its training did not come to an end; train --out ${folder} --resume finishes it.`
        : `it holds no model (${FILES.model} is missing).`,
    );
  }
}

/** The model; what is wrong with it is a Failure. */
export async function load(folder: string) {
  try {
    return await loadModel(folder);
  } catch (error) {
    throw new Failure((error as Error).message);
  }
}
