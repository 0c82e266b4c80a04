/**
 * One build: the library's entries (library_files.mjs), a script-tag file, types, and the command line. `--if-stale` skips
 * it when dist is newer than every source.
 *
 * Source maps are made for the library's readable files and hold the sources, so that a stack trace in a user's page names
 * our lines; the minified script-tag file and the command line have none.
 *
 * The build is made in a folder of its own and renamed to dist at the end: whoever runs dist meanwhile never sees half
 * of it.
 */
import {spawnSync} from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';
import {writeLibrary, writeModuleTypes} from './library_files.mjs';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
const SOURCES = [
  'index.ts',
  'node_webgpu.ts',
  'src',
  'kernels',
  'ops',
  'layers',
  'models',
  'generation',
  'training',
  'cli',
  'scripts',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
];
const STAMP = '.built';
/** The peer packages, which a page that uses script tags has in the global `tf`. */
const GLOBAL_TF = /^@tensorflow\/tfjs-(core|layers)$/;

/** Time of the newest file below a path. */
function newest(path) {
  const stat = statSync(path, {throwIfNoEntry: false});
  if (stat === undefined) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

const started = Date.now();
if (process.argv.includes('--if-stale') && newest(join('dist', STAMP)) > Math.max(...SOURCES.map(newest))) {
  process.exit(0);
}

const out = `.dist-${process.pid}`;
rmSync(out, {recursive: true, force: true});
mkdirSync(out);
process.on('exit', () => rmSync(out, {recursive: true, force: true}));

const globalTf = {
  name: 'global-tf',
  setup(builder) {
    builder.onResolve({filter: GLOBAL_TF}, ({path}) => ({path, namespace: 'global-tf'}));
    builder.onLoad({filter: /.*/, namespace: 'global-tf'}, () => ({
      contents: `if (!globalThis.tf) throw new Error('tfjs-linear-attention: expected the global tf; put the script tag of @tensorflow/tfjs before this one.');\nmodule.exports = globalThis.tf;`,
    }));
  },
};

const common = {
  bundle: true,
  target: 'es2022',
  legalComments: 'none',
  logLevel: 'warning',
};
await Promise.all([
  writeLibrary(out),
  build({
    ...common,
    entryPoints: ['index.ts'],
    format: 'iife',
    globalName: 'tfla',
    platform: 'browser',
    plugins: [globalTf],
    minify: true,
    outfile: `${out}/tfjs-linear-attention.min.js`,
  }),
  build({
    ...common,
    entryPoints: ['cli/main.ts'],
    format: 'cjs',
    platform: 'node',
    packages: 'external',
    outfile: `${out}/cli.cjs`,
    banner: {js: '#!/usr/bin/env node'},
  }),
  // What `training.train` starts as its worker threads.
  build({
    ...common,
    entryPoints: ['cli/training_worker.ts'],
    format: 'cjs',
    platform: 'node',
    packages: 'external',
    outfile: `${out}/worker.cjs`,
  }),
]).catch(() => {
  // esbuild has said what is wrong.
  process.exit(1);
});

// What `setup-node` runs, and the sources that it compiles on the user's machine.
cpSync('scripts/setup_node.mjs', `${out}/setup/setup_node.mjs`);
cpSync('scripts/node', `${out}/setup/node`, {
  recursive: true,
  filter: (path) => !path.endsWith('write_tag.mjs'),
});
cpSync('src/node/native', `${out}/setup/native`, {recursive: true});

const types = spawnSync(
  process.execPath,
  ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', `${out}/types`],
  {stdio: ['ignore', 'inherit', 'inherit']},
);
if (types.status !== 0) {
  console.error('build: the types have errors; dist is left as it was.');
  process.exit(1);
}
writeModuleTypes(`${out}/types`);

// The stamp bears the time of the start: a source that changed while we built makes dist stale.
writeFileSync(join(out, STAMP), '');
utimesSync(join(out, STAMP), started / 1000, started / 1000);
// Two builds may end at the same moment (a test run beside an editor's): the later one tries again.
for (let attempt = 1; ; attempt++) {
  const old = `.dist-old-${process.pid}-${attempt}`;
  try {
    if (existsSync('dist')) renameSync('dist', old);
    renameSync(out, 'dist');
    rmSync(old, {recursive: true, force: true});
    break;
  } catch (error) {
    rmSync(old, {recursive: true, force: true});
    if (attempt === 5) throw error;
  }
}
console.error(`built dist in ${((Date.now() - started) / 1000).toFixed(1)} s`);
