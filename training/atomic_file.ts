import {fail} from '../src/errors';
import {makeFolders} from './folders';
import {type NodeModule, nodeBuiltin} from './node_builtin';

/** Node cannot read larger files in one piece. */
const MAX_BYTES = 2 ** 31 - 1;

/**
 * Writes files so that each is there wholly or not at all: all into temporary files in the same folder, flushed to the
 * disk, then renamed. Missing folders are made. When something fails the temporary files are removed, the files that
 * were there stay, and the error says which file and why.
 */
export function writeFilesAtomically(fn: string, files: readonly {path: string; bytes: Uint8Array}[]): void {
  const fs = nodeBuiltin(fn, 'writing files', 'node:fs');
  const {dirname} = nodeBuiltin(fn, 'writing files', 'node:path');
  const renames = files.map(({path, bytes}) => ({path, bytes, temporary: `${path}.${process.pid}.tmp`}));
  let current = files[0]?.path;
  try {
    for (const {path, bytes, temporary} of renames) {
      current = path;
      makeFolders(fn, dirname(path));
      const file = fs.openSync(temporary, 'w');
      try {
        let written = 0;
        while (written < bytes.length) {
          written += fs.writeSync(file, bytes, written);
        }
        fs.fsyncSync(file);
      } finally {
        fs.closeSync(file);
      }
    }
    for (const {path, temporary} of renames) {
      current = path;
      fs.renameSync(temporary, path);
    }
  } catch (error) {
    for (const {temporary} of renames) {
      removeQuietly(fs, temporary);
    }
    fail(
      fn,
      `could not write '${current}': ${(error as Error).message}. What was there before is unchanged.`,
    );
  }
}

/** Fails early where `path` could not be written later. Leaves nothing behind but the folder. */
export function checkWritable(fn: string, path: string): void {
  const fs = nodeBuiltin(fn, 'writing files', 'node:fs');
  const {dirname} = nodeBuiltin(fn, 'writing files', 'node:path');
  const probe = `${path}.${process.pid}.tmp`;
  try {
    makeFolders(fn, dirname(path));
    fs.writeFileSync(probe, '');
  } catch (error) {
    fail(fn, `cannot write '${path}': ${(error as Error).message}.`);
  } finally {
    removeQuietly(fs, probe);
  }
}

/** Used where an earlier error says more than one about a temporary file. */
function removeQuietly(fs: NodeModule<'node:fs'>, path: string): void {
  try {
    fs.rmSync(path, {force: true});
  } catch {
    // Nothing can be done about it.
  }
}

/** The bytes of a regular file; null when there is none. */
export function readFileIfAny(fn: string, path: string): Uint8Array | null {
  const fs = nodeBuiltin(fn, 'reading files', 'node:fs');
  try {
    const stat = fs.statSync(path, {throwIfNoEntry: false});
    if (stat === undefined) {
      return null;
    }
    if (!stat.isFile()) {
      fail(fn, `expected '${path}' to be a file.`);
    }
    if (stat.size > MAX_BYTES) {
      fail(fn, `'${path}' has ${stat.size} bytes, more than the ${MAX_BYTES} that can be read.`);
    }
    return fs.readFileSync(path);
  } catch (error) {
    if ((error as Error).message.startsWith(`${fn}:`)) {
      throw error;
    }
    fail(fn, `could not read '${path}': ${(error as Error).message}.`);
  }
}
