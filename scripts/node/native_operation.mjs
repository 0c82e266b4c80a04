/** Builds the native TensorFlow operation (src/node/native) against tfjs-node's TensorFlow, into the cache. */
import {createHash} from 'node:crypto';
import {existsSync, readdirSync, readFileSync, realpathSync} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {cacheFolder, isMarked, putInPlace, setMark} from './cache.mjs';
import {command, SetupError} from './command.mjs';
import {nodeHeaders} from './node_headers.mjs';
import {check} from './tfjs_node.mjs';

/** In the repository, and where the build puts it for the package. */
const FOLDERS = ['../../src/node/native', '../native'];

/** Not -ffast-math: NaN and infinity must come through. `nodelete`: TensorFlow keeps our functions for good. */
const FLAGS = [
  ...['-std=c++17', '-O3', '-fno-math-errno', '-fno-trapping-math', '-fPIC', '-pthread'],
  ...['-Wall', '-Wno-psabi', '-Wl,-z,nodelete'],
];

/** The folder of the C++ files; linear_attention.cc includes the others. */
export function nativeSources() {
  const paths = FOLDERS.map((path) => fileURLToPath(new URL(path, import.meta.url)));
  return paths.find((path) => existsSync(path));
}

/** Names the build of one source; the library knows it as NATIVE_TAG (src/node/native_tag.ts). */
export function nativeTag() {
  const hash = createHash('sha256').update(FLAGS.join(' '));
  for (const name of readdirSync(nativeSources()).sort()) {
    hash.update(name).update(readFileSync(join(nativeSources(), name)));
  }
  return hash.digest('hex').slice(0, 12);
}

const FRAMEWORK = 'libtensorflow_framework.so.2';

/** True where what was built for another installation works in this one. */
function runs(addon, tfjsNode) {
  if (!existsSync(addon)) {
    return false;
  }
  try {
    check('operation', addon, tfjsNode.root, nativeTag());
    return true;
  } catch {
    return false;
  }
}

export function buildNativeOperation(tfjsNode) {
  const addon = join(cacheFolder(), `linear-attention-${nativeTag()}.node`);
  const mark = `${addon}.checked`;
  // The addon, and the TensorFlow that it was tried in: the library itself, which a link may stand for.
  const parts = [addon, realpathSync(join(tfjsNode.libraries, FRAMEWORK))];
  if (isMarked(mark, parts) || runs(addon, tfjsNode)) {
    setMark(mark, parts);
    return;
  }
  try {
    putInPlace(addon, (temporary) => {
      const output = join(temporary, 'made.node');
      command('g++', [
        ...[
          ...FLAGS,
          '-shared',
          `-DTFLA_TAG="${nativeTag()}"`,
          `-I${nodeHeaders()}`,
          join(nativeSources(), 'linear_attention.cc'),
        ],
        ...[`-L${tfjsNode.libraries}`, `-l:${FRAMEWORK}`, '-o', output],
      ]);
      check('operation', output, tfjsNode.root, nativeTag());
      return output;
    });
    setMark(mark, parts);
  } catch (error) {
    throw new SetupError(
      `tfjs-node works, but the native operation could not be built, so linear attention runs in TensorFlow's own operations there (about 2.5 times slower).\n${error.message}`,
      {partial: true},
    );
  }
}
