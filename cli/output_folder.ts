/** The folder that a training run writes: made, and proven writable, before any work is done. */
import {existsSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {makeFolders} from '../training/folders';
import {Failure, reason, UsageError} from './errors';

/** What a run leaves in its folder. */
export const FILES = {
  model: 'model.json',
  weights: 'weights.bin',
  tokenizer: 'tokenizer.json',
  checkpoint: 'checkpoint.bin',
  run: 'run.json',
  log: 'log.jsonl',
} as const;

function present(path: string): string[] {
  return existsSync(path) ? Object.values(FILES).filter((name) => existsSync(join(path, name))) : [];
}

/**
 * Looks, and changes nothing. Without `resume`, a folder that holds a run already is refused unless `overwrite`: nothing is
 * lost by repeating a command.
 */
export function checkFolder(path: string, {resume, overwrite}: {resume: boolean; overwrite: boolean}): void {
  if (existsSync(path) && !statSync(path).isDirectory()) {
    throw new Failure(`--out ${path}: it is a file; expected a folder.`);
  }
  const files = present(path);
  if (resume && !files.includes(FILES.run)) {
    throw new Failure(`--resume: ${path} holds no run to continue (${FILES.run} is missing).`);
  }
  if (resume && !files.includes(FILES.checkpoint)) {
    throw new Failure(
      `--resume: ${path} holds no checkpoint (${FILES.checkpoint} is missing): the run ended before its first. ` +
        'Start it again with --overwrite in place of --resume.',
    );
  }
  if (files.length > 0 && !resume && !overwrite) {
    throw new UsageError(
      `train: --out ${path} holds a run already (${files.join(', ')}). ` +
        'Give --resume to continue it, --overwrite to replace it, or another folder.',
    );
  }
}

/** Makes the folder, proves that it can be written, and removes the run that is to be replaced. */
export function prepareFolder(path: string, replace: boolean): void {
  try {
    makeFolders('train', path);
    const probe = join(path, `.write-test-${process.pid}`);
    try {
      writeFileSync(probe, 'x');
    } finally {
      rmSync(probe, {force: true});
    }
    if (replace) for (const name of present(path)) rmSync(join(path, name));
  } catch (error) {
    throw new Failure(`--out ${path}: cannot write in it: ${reason(error)}.`);
  }
}
