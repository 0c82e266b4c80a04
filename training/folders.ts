import {show} from '../src/errors';
import {nodeBuiltin} from './node_builtin';

/**
 * Makes a folder and its missing parents, one by one: Node's own recursive way never returns where a file system says
 * "no such file or directory" of a folder that it lets nobody make (/proc), because it takes that for a missing parent.
 *
 * @throws Error of the first folder that cannot be made, Node's own where that says why.
 */
export function makeFolders(fn: string, path: string): void {
  const fs = nodeBuiltin(fn, 'writing files', 'node:fs');
  const {dirname, resolve} = nodeBuiltin(fn, 'writing files', 'node:path');
  const missing: string[] = [];
  for (let at = resolve(path); !fs.existsSync(at) && at !== dirname(at); at = dirname(at)) {
    missing.unshift(at);
  }
  for (const folder of missing) {
    try {
      fs.mkdirSync(folder);
    } catch (error) {
      // Another process may have made it meanwhile.
      if (fs.statSync(folder, {throwIfNoEntry: false})?.isDirectory()) {
        continue;
      }
      const {code} = error as NodeJS.ErrnoException;
      throw code === 'ENOENT' ? new Error(`no folder can be made in ${show(dirname(folder))}`) : error;
    }
  }
}
