/** The installed package @tensorflow/tfjs-node: where it is, and whether it works. */
import {existsSync, readdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {isMarked, setMark} from './cache.mjs';
import {command, SetupError} from './command.mjs';

const CHECK = fileURLToPath(new URL('check.mjs', import.meta.url));

/** tfjs-node as the current folder's project sees it, else as this package does. */
export function findTfjsNode() {
  for (const from of [join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      const manifest = createRequire(from).resolve('@tensorflow/tfjs-node/package.json');
      const root = dirname(manifest);
      return {
        root,
        version: JSON.parse(readFileSync(manifest, 'utf8')).version,
        binding: join(root, 'lib', 'napi-v8', 'tfjs_binding.node'),
        libraries: join(root, 'deps', 'lib'),
        mark: join(root, 'lib', '.checked'),
      };
    } catch {
      // Looked for in the next place.
    }
  }
  throw new SetupError(
    '@tensorflow/tfjs-node is not installed; npm install --ignore-scripts @tensorflow/tfjs-node',
  );
}

/** What must be as it was when the package was last seen working; null where something is missing. */
function partsOf({binding, libraries}) {
  const names = existsSync(libraries) ? readdirSync(libraries).filter((name) => name.includes('.so')) : [];
  const parts = [binding, ...names.map((name) => join(libraries, name))];
  return names.length > 0 && parts.every((path) => existsSync(path)) ? parts : null;
}

/** True where tfjs-node multiplies matrices. Tried in a process of its own, once for the files that are there. */
export function works(tfjsNode) {
  const parts = partsOf(tfjsNode);
  if (parts === null) {
    return false;
  }
  if (isMarked(tfjsNode.mark, parts)) {
    return true;
  }
  try {
    check('package', tfjsNode.root);
  } catch {
    return false;
  }
  setMark(tfjsNode.mark, parts);
  return true;
}

/** Runs one check of check.mjs in a process of its own; throws with what it said. */
export function check(...args) {
  command(process.execPath, [CHECK, ...args], {
    timeout: 180_000,
    env: {...process.env, TF_CPP_MIN_LOG_LEVEL: '2'},
  });
}
