/**
 * One build: CommonJS, ESM for bundlers and pages, the thin ESM wrapper for Node, types, and the command line.
 * `--if-stale` skips it when dist is newer than every source.
 */
import {execFileSync} from 'node:child_process';
import {mkdirSync, readdirSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {build} from 'esbuild';

const root = new URL('..', import.meta.url).pathname;
process.chdir(root);
const SOURCES = [
  'index.ts',
  'src',
  'ops',
  'layers',
  'models',
  'generation',
  'training',
  'cli',
  'scripts',
  'package.json',
  'tsconfig.json',
];
const STAMP = 'dist/.built';

/** Time of the newest file below a path. */
function newest(path) {
  const stat = statSync(path, {throwIfNoEntry: false});
  if (stat === undefined) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(stat.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}

if (process.argv.includes('--if-stale') && newest(STAMP) > Math.max(...SOURCES.map(newest))) {
  process.exit(0);
}

rmSync('dist', {recursive: true, force: true});
mkdirSync('dist');
const common = {bundle: true, packages: 'external', target: 'es2022', sourcemap: true, logLevel: 'warning'};
await Promise.all([
  build({
    ...common,
    entryPoints: ['index.ts'],
    format: 'cjs',
    platform: 'neutral',
    outfile: 'dist/index.cjs',
  }),
  build({
    ...common,
    entryPoints: ['index.ts'],
    format: 'esm',
    platform: 'neutral',
    outfile: 'dist/index.mjs',
  }),
  build({
    ...common,
    entryPoints: ['cli/main.ts'],
    format: 'cjs',
    platform: 'node',
    outfile: 'dist/cli.cjs',
    banner: {js: '#!/usr/bin/env node'},
  }),
]);

// Node's ESM entry wraps the CommonJS build, as tfjs's own does: one copy of the kernels and layers in a process.
const names = Object.keys(createRequire(import.meta.url)('../dist/index.cjs')).filter(
  (name) => name !== '__esModule',
);
writeFileSync(
  'dist/node.mjs',
  `import api from './index.cjs';\nexport const {${names.join(', ')}} = api;\nexport default api;\n`,
);

execFileSync('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json'], {stdio: 'inherit'});
writeFileSync(STAMP, '');
