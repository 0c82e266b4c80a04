/** An application with a second tfjs-core and tfjs-layers below another package, as npm makes it when versions differ. */
import {cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';

const MAIN = {'tfjs-core': 'dist/tf-core.node.js', 'tfjs-layers': 'dist/tf-layers.node.js'};

/** Makes the package `other` with copies of its own in `app`. */
export function makeSecondCopies(root, app) {
  const other = join(app, 'node_modules/other');
  mkdirSync(other, {recursive: true});
  writeFileSync(join(other, 'package.json'), '{"name": "other", "version": "1.0.0", "main": "index.cjs"}');
  writeFileSync(
    join(other, 'index.cjs'),
    "module.exports = {tf: require('@tensorflow/tfjs-core'), tfl: require('@tensorflow/tfjs-layers')};\n",
  );
  for (const [name, main] of Object.entries(MAIN)) {
    const from = join(root, 'node_modules/@tensorflow', name);
    const to = join(other, 'node_modules/@tensorflow', name);
    mkdirSync(join(to, 'dist'), {recursive: true});
    cpSync(join(from, main), join(to, main));
    cpSync(join(from, 'package.json'), join(to, 'package.json'));
    const {dependencies = {}} = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
    for (const dependency of Object.keys(dependencies)) link(root, other, dependency);
  }
}

/** What the copies need, from the repository. */
function link(root, other, name) {
  const to = join(other, 'node_modules', name);
  mkdirSync(dirname(to), {recursive: true});
  const found = createRequire(join(root, 'node_modules/@tensorflow/tfjs-core/package.json')).resolve.paths(
    name,
  );
  const from = found.map((folder) => join(folder, name)).find((path) => exists(join(path, 'package.json')));
  if (from !== undefined && !exists(to)) symlinkSync(from, to);
}

function exists(path) {
  try {
    readFileSync(path);
    return true;
  } catch (error) {
    return error.code === 'EISDIR';
  }
}
