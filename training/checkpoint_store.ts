import {check, show} from '../src/errors';
import {checkWritable, readFileIfAny, writeFilesAtomically} from './atomic_file';
import {type NodeModule, nodeBuiltin} from './node_builtin';

/** Where checkpoints are kept. In a page: an object over IndexedDB, a download, a server. */
export interface CheckpointStore {
  /** Keeps the bytes in place of earlier ones. Should leave the earlier ones when it fails. */
  save(bytes: Uint8Array): void | Promise<void>;
  /** The bytes saved last; null when there are none. */
  load(): Uint8Array | null | Promise<Uint8Array | null>;
}

export interface NamedStore extends CheckpointStore {
  /** For messages. */
  name: string;
  /** Fails early where `save` would fail later. */
  prepare(): void;
}

/** Name of the file when a folder is given. */
const FILE_NAME = 'checkpoint.bin';

/** A store over a file path (Node; an existing folder gets `checkpoint.bin`), or the caller's own. */
export function toStore(fn: string, option: string, x: unknown): NamedStore {
  if (typeof x === 'string' && x !== '') {
    return fileStore(fn, x);
  }
  const own = x as CheckpointStore | null;
  check(
    typeof own === 'object' && typeof own?.save === 'function' && typeof own.load === 'function',
    fn,
    () => `expected ${option} to be a file path or an object with functions save and load; got ${show(x)}.`,
  );
  return {
    name: `the ${option} object`,
    prepare: () => {},
    save: (bytes) => own.save(bytes),
    load: () => own.load(),
  };
}

function fileStore(fn: string, given: string): NamedStore {
  const what = 'a checkpoint path (in a page, use an object with functions save and load)';
  const fs = nodeBuiltin(fn, what, 'node:fs');
  const {join, resolve} = nodeBuiltin(fn, what, 'node:path');
  const name = isFolder(fs, given) ? join(given, FILE_NAME) : given;
  // Absolute, because the process may change its folder during a run.
  const path = resolve(name);
  return {
    name: `'${name}'`,
    prepare: () => checkWritable(fn, path),
    save: (bytes) => writeFilesAtomically(fn, [{path, bytes}]),
    load: () => readFileIfAny(fn, path),
  };
}

function isFolder(fs: NodeModule<'node:fs'>, path: string): boolean {
  try {
    return fs.statSync(path).isDirectory();
  } catch {
    // Reading or writing it will say what is wrong.
    return false;
  }
}
