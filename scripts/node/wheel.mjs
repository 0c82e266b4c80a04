/** libtensorflow and its headers from TensorFlow's wheel, kept in the cache. */
import {existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync} from 'node:fs';
import {join} from 'node:path';
import {cacheFolder, putInPlace} from './cache.mjs';
import {command, SetupError} from './command.mjs';

const VERSION = '2.15.1';
export const LIBRARIES = ['libtensorflow_cc.so.2', 'libtensorflow_framework.so.2'];
const HEADERS = ['tensorflow/c/', 'tensorflow/core/platform/', 'tsl/c/', 'tsl/platform/'];

/** Functions that the binding and the native operation call. */
const SYMBOLS = {
  'libtensorflow_cc.so.2': ['TF_Version', 'TFE_NewContext', 'TFE_NewTensorHandle'],
  'libtensorflow_framework.so.2': [
    'TF_RegisterOpDefinition',
    'TF_RegisterKernelBuilder',
    'TF_AllocateOutput',
  ],
};

const DOWNLOAD = [
  ...['-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--implementation', 'cp'],
  ...['--python-version', '3.11', '--abi', 'cp311'],
  ...['--platform', 'manylinux_2_17_x86_64', '--platform', 'manylinux2014_x86_64'],
  `tensorflow-cpu==${VERSION}`,
];

/** Unpacks what is needed (zipfile compares checksums) and lists the sizes that the wheel gives. */
const UNPACK = `
import json, shutil, sys, zipfile
wheel, out, libraries, headers = sys.argv[1], sys.argv[2], sys.argv[3].split(','), sys.argv[4].split(',')
sizes = {}
with zipfile.ZipFile(wheel) as z:
    for info in z.infolist():
        name = info.filename.removeprefix('tensorflow/')
        if name in libraries or name.startswith(tuple('include/' + h for h in headers)) and not info.is_dir():
            info.filename = name
            z.extract(info, out)
            sizes[name] = info.file_size
with open(out + '/sizes.json', 'w') as f:
    json.dump(sizes, f)
`;

/** The folder with the libraries and include/. */
export function tensorflowLibrary() {
  const folder = join(cacheFolder(), `tensorflow-cpu-${VERSION}`);
  if (fault(folder) !== null) {
    putInPlace(folder, (temporary) => {
      const out = join(temporary, 'library');
      unpack(out);
      const wrong = fault(out) ?? missingSymbol(out);
      if (wrong !== null) {
        throw new SetupError(`tensorflow-cpu ${VERSION}: ${wrong}`);
      }
      return out;
    });
    rmSync(downloads(), {recursive: true, force: true});
  }
  return folder;
}

const downloads = () => join(cacheFolder(), 'download');

const wheelIn = (folder) => {
  const name = existsSync(folder) ? readdirSync(folder).find((file) => file.endsWith('.whl')) : undefined;
  return name === undefined ? null : join(folder, name);
};

/** Downloads the wheel. pip moves it here when it is whole. */
function wheel() {
  mkdirSync(downloads(), {recursive: true});
  command('python3', DOWNLOAD, {cwd: downloads(), timeout: 1_800_000});
  return wheelIn(downloads());
}

/** Unpacks the wheel into `out`; one that an earlier run left and that is broken is downloaded again. */
function unpack(out) {
  const left = wheelIn(downloads());
  const path = left ?? wheel();
  rmSync(out, {recursive: true, force: true});
  mkdirSync(out);
  try {
    command('python3', ['-c', UNPACK, path, out, LIBRARIES.join(','), HEADERS.join(',')]);
  } catch (error) {
    rmSync(path, {force: true});
    if (left === null) {
      throw error;
    }
    unpack(out);
  }
}

/** What is wrong with an unpacked library's files, or null. */
function fault(folder) {
  const list = join(folder, 'sizes.json');
  if (!existsSync(list)) {
    return 'incomplete';
  }
  const sizes = JSON.parse(readFileSync(list, 'utf8'));
  const names = [...LIBRARIES, ...Object.keys(sizes)];
  const wrong = names.find(
    (name) => statSync(join(folder, name), {throwIfNoEntry: false})?.size !== sizes[name],
  );
  return wrong === undefined ? null : `${wrong} is missing or has another size than in the wheel`;
}

function missingSymbol(folder) {
  for (const [library, symbols] of Object.entries(SYMBOLS)) {
    const defined = new Set(command('nm', ['-D', '--defined-only', join(folder, library)]).split(/\s+|@+/));
    const missing = symbols.find((symbol) => !defined.has(symbol));
    if (missing !== undefined) {
      return `${library} lacks ${missing}`;
    }
  }
  return null;
}
