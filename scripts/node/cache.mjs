/** The folder outside node_modules that keeps what is large or slow to make, and how things are put into it. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import {homedir} from 'node:os';
import {dirname, isAbsolute, join} from 'node:path';

/** The library looks for the native operation here too (src/node/native.ts). */
export function cacheFolder() {
  const base = process.env.XDG_CACHE_HOME ?? '';
  return join(isAbsolute(base) ? base : join(homedir(), '.cache'), 'tfjs-linear-attention');
}

/**
 * Makes a folder or file at `path` by `make(temporary)`, which gets an empty folder beside it and returns what is to be
 * renamed to `path`. Whoever looks at `path` sees all of it or nothing.
 */
export function putInPlace(path, make) {
  mkdirSync(dirname(path), {recursive: true});
  removeLeftovers(dirname(path));
  const temporary = mkdtempSync(join(dirname(path), '.making-'));
  try {
    const made = make(temporary);
    if (existsSync(path) && statSync(path).isDirectory()) {
      renameSync(path, join(temporary, 'old'));
    }
    renameSync(made, path);
  } finally {
    rmSync(temporary, {recursive: true, force: true});
  }
}

/** What killed runs left: nothing is made for longer than an hour. */
function removeLeftovers(folder) {
  for (const name of readdirSync(folder).filter((name) => name.startsWith('.making-'))) {
    const made = statSync(join(folder, name), {throwIfNoEntry: false})?.mtimeMs ?? Date.now();
    if (Date.now() - made > 3_600_000) {
      rmSync(join(folder, name), {recursive: true, force: true});
    }
  }
}

/** Sizes and times of files, to see later whether they are still the same; null where one is missing. */
export function fingerprint(paths) {
  const stats = paths.map((path) => statSync(path, {throwIfNoEntry: false}));
  return stats.includes(undefined)
    ? null
    : JSON.stringify(stats.map(({size, mtimeMs}, i) => [paths[i], size, mtimeMs]));
}

/** True where `mark` says that these files were found good as they are now. */
export function isMarked(mark, paths, extra = '') {
  const now = fingerprint(paths);
  return now !== null && existsSync(mark) && readFileSync(mark, 'utf8') === now + extra;
}

export function setMark(mark, paths, extra = '') {
  writeFileSync(mark, fingerprint(paths) + extra);
}
