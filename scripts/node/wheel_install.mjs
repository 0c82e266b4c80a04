/**
 * Where libtensorflow cannot be downloaded: the same library out of TensorFlow's Python package, and tfjs-node's binding
 * compiled against it. Library and binding stay in the cache; node_modules gets the binding and links.
 */
import {createHash} from 'node:crypto';
import {copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync} from 'node:fs';
import {join} from 'node:path';
import {cacheFolder, isMarked, putInPlace, setMark} from './cache.mjs';
import {command, SetupError} from './command.mjs';
import {nodeHeaders} from './node_headers.mjs';
import {check, works} from './tfjs_node.mjs';
import {LIBRARIES, tensorflowLibrary} from './wheel.mjs';

const SOURCES = ['binding/tfjs_backend.cc', 'binding/tfjs_binding.cc'];

export function installFromWheel(tfjsNode) {
  const library = tensorflowLibrary();
  const binding = compiledBinding(tfjsNode, library);
  putInPlace(join(tfjsNode.root, 'deps'), (temporary) => linkLibraries(join(temporary, 'deps'), library));
  putInPlace(join(tfjsNode.root, 'lib'), (temporary) => {
    const lib = join(temporary, 'lib');
    mkdirSync(join(lib, 'napi-v8'), {recursive: true});
    copyFileSync(binding, join(lib, 'napi-v8', 'tfjs_binding.node'));
    return lib;
  });
  if (!works(tfjsNode)) {
    rmSync(tfjsNode.mark, {force: true});
    throw new SetupError(
      'tfjs-node was built but does not multiply matrices; delete the cache folder and try again.',
    );
  }
}

/** `deps` with lib/ as the binding expects it. */
function linkLibraries(deps, library) {
  mkdirSync(join(deps, 'lib'), {recursive: true});
  for (const name of LIBRARIES) {
    symlinkSync(join(library, name), join(deps, 'lib', name));
  }
  return deps;
}

/** tfjs_binding.node from the cache, compiled and tried out first where it is not there. */
function compiledBinding({root}, library) {
  const hash = createHash('sha256').update(library);
  for (const source of SOURCES) {
    hash.update(readFileSync(join(root, source)));
  }
  const folder = join(cacheFolder(), `binding-${hash.digest('hex').slice(0, 12)}`);
  const binding = join(folder, 'lib', 'napi-v8', 'tfjs_binding.node');
  const mark = join(folder, '.checked');
  if (!isMarked(mark, [binding])) {
    putInPlace(folder, (temporary) => {
      const made = join(temporary, 'made');
      const output = join(made, 'lib', 'napi-v8', 'tfjs_binding.node');
      mkdirSync(join(made, 'lib', 'napi-v8'), {recursive: true});
      const deps = linkLibraries(join(made, 'deps'), library);
      command('g++', [
        ...['-std=c++17', '-O2', '-fPIC', '-shared', '-DNAPI_VERSION=8'],
        ...[nodeHeaders(), join(library, 'include'), root].map((path) => `-I${path}`),
        ...SOURCES.map((source) => join(root, source)),
        `-L${join(deps, 'lib')}`,
        ...LIBRARIES.map((name) => `-l:${name}`),
        '-Wl,-rpath,$ORIGIN/../../deps/lib',
        ...['-o', output],
      ]);
      check('binding', output);
      return made;
    });
    setMark(mark, [binding]);
  }
  return binding;
}
