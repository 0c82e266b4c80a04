/** run.json: the settings that a run was started with, so that --resume continues exactly that run. */
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {characterTokenizerFromJSON} from '../models';
import {writeFilesAtomically} from '../training/atomic_file';
import {Failure, reason, UsageError} from './errors';
import {FILES} from './output_folder';

export type Setting = string | number | boolean;
export type Settings = Record<string, Setting>;

/** Larger ones are not ours. */
const MAX_BYTES = 16 * 1024 * 1024;

export function writeRunFiles(folder: string, settings: Settings, tokenizer: object): void {
  const bytes = (value: object) => new TextEncoder().encode(`${JSON.stringify(value, null, 1)}\n`);
  try {
    writeFilesAtomically('train', [
      {path: join(folder, FILES.tokenizer), bytes: bytes(tokenizer)},
      {path: join(folder, FILES.run), bytes: bytes({version: 1, settings})},
    ]);
  } catch (error) {
    throw new Failure((error as Error).message);
  }
}

/** The file's JSON; whatever is wrong with it is a Failure that names it. */
export function readJson(folder: string, name: string): unknown {
  const path = join(folder, name);
  try {
    const bytes = readFileSync(path);
    if (bytes.length > MAX_BYTES) throw new Error(`it has ${bytes.length} bytes`);
    return JSON.parse(new TextDecoder('utf-8', {fatal: true}).decode(bytes));
  } catch (error) {
    throw new Failure(`cannot use ${path}: ${reason(error)}.`);
  }
}

/**
 * The settings in the folder's run.json. `fallback` has the type and the default of every setting; what the file lacks, or has in
 * another type, is an error.
 */
export function readSettings<S extends Settings>(folder: string, expected: S): S {
  const json = readJson(folder, FILES.run) as {version?: unknown; settings?: Record<string, unknown>} | null;
  const bad = (why: string) => new Failure(`cannot use ${join(folder, FILES.run)}: ${why}.`);
  if (json?.version !== 1) throw bad('it is not of this version of the program');
  const {settings} = json;
  if (typeof settings !== 'object' || settings === null) throw bad('it has no settings');
  const read = Object.entries(expected).map(([name, value]) => {
    const found = Object.hasOwn(settings, name) ? settings[name] : undefined;
    if (typeof found !== typeof value) {
      throw bad(`its setting '${name}' is ${JSON.stringify(found)}, expected a ${typeof value}`);
    }
    return [name, found];
  });
  return Object.fromEntries(read) as S;
}

/** Characters in a window of the training; null where the folder does not say. */
export function trainedLength(folder: string): number | null {
  try {
    const {settings} = readJson(folder, FILES.run) as {settings: {length: unknown}};
    return typeof settings.length === 'number' ? settings.length : null;
  } catch {
    return null;
  }
}

export function readTokenizer(folder: string) {
  const json = readJson(folder, FILES.tokenizer);
  try {
    return characterTokenizerFromJSON(json);
  } catch (error) {
    throw new Failure(`cannot use ${join(folder, FILES.tokenizer)}: ${(error as Error).message}`);
  }
}

/** A run is continued with the settings it was started with: other ones on the command line are refused. */
export function checkUnchanged(settings: Settings, given: Settings, names: readonly string[]): void {
  const changed = names.filter((name) => given[name] !== settings[name]);
  if (changed.length > 0) {
    const list = changed.map((name) => `--${name} ${given[name]} (the run has ${settings[name]})`);
    throw new UsageError(
      `train: --resume continues a run with its own settings; leave out ${list.join(', ')}.`,
    );
  }
}
