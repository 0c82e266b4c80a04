/** The folder that a training run writes: made, and proven writable, before any work is done. */
import {existsSync, mkdirSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
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

/**
 * Makes the folder and proves that it can be written. Without `resume`, a folder that holds a run already is refused
 * unless `overwrite`: nothing is lost by repeating a command.
 */
export function prepareFolder(
  path: string,
  {resume, overwrite}: {resume: boolean; overwrite: boolean},
): void {
  if (existsSync(path) && !statSync(path).isDirectory()) {
    throw new Failure(`--out ${path}: it is a file; expected a folder.`);
  }
  const present = existsSync(path) ? Object.values(FILES).filter((name) => existsSync(join(path, name))) : [];
  if (resume && !present.includes(FILES.run)) {
    throw new Failure(`--resume: ${path} holds no run to continue (${FILES.run} is missing).`);
  }
  if (present.length > 0 && !resume && !overwrite) {
    throw new UsageError(
      `train: --out ${path} holds a run already (${present.join(', ')}). ` +
        'Give --resume to continue it, --overwrite to replace it, or another folder.',
    );
  }
  try {
    mkdirSync(path, {recursive: true});
    const probe = join(path, `.write-test-${process.pid}`);
    try {
      writeFileSync(probe, 'x');
    } finally {
      rmSync(probe, {force: true});
    }
    if (overwrite && !resume) for (const name of present) rmSync(join(path, name));
  } catch (error) {
    throw new Failure(`--out ${path}: cannot write in it: ${reason(error)}.`);
  }
}
