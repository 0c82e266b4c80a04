/**
 * Random calls of the native operations' arithmetic under AddressSanitizer, for every kind of processor that this one
 * can stand for.
 *
 *     npm run fuzz:native [-- SECONDS [SEED]]      20 seconds each, seed 1
 */
import {spawnSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {command} from './node/command.mjs';

const source = fileURLToPath(new URL('../test/node/native_fuzz.cc', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tfla-fuzz-'));
process.on('exit', () => rmSync(folder, {recursive: true, force: true}));
const program = join(folder, 'fuzz');

command('g++', [
  ...['-std=c++17', '-O1', '-g', '-fno-math-errno', '-fno-trapping-math', '-pthread', '-Wall', '-Wno-psabi'],
  ...['-fsanitize=address,undefined', '-fno-sanitize-recover=undefined', source, '-o', program],
]);
for (const target of ['avx512', 'avx2', 'baseline']) {
  const {status} = spawnSync(program, process.argv.slice(2), {
    env: {...process.env, TFLA_TARGET: target},
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) {
    process.exitCode = 1;
  }
}
