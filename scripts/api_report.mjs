/**
 * Writes docs/api.md, the report of the public API. `--check` writes nothing, and fails with the difference when the
 * file is not what the sources say.
 */
import {spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {reportOf} from './api/report.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const path = join(root, 'docs', 'api.md');
const build = spawnSync(process.execPath, ['scripts/build.mjs', '--if-stale'], {cwd: root, stdio: 'inherit'});
if (build.status !== 0) process.exit(build.status ?? 1);

const wanted = reportOf(root);
if (!process.argv.includes('--check')) {
  writeFileSync(path, wanted);
} else if (!existsSync(path) || readFileSync(path, 'utf8') !== wanted) {
  const folder = mkdtempSync(join(tmpdir(), 'api-'));
  const made = join(folder, 'api.md');
  writeFileSync(made, wanted);
  const {stdout} = spawnSync('git', ['diff', '--no-index', '--unified=2', path, made], {encoding: 'utf8'});
  rmSync(folder, {recursive: true, force: true});
  console.error(stdout || 'docs/api.md is missing.');
  console.error(
    'The public API is not what docs/api.md says. If that is meant: npm run api, and a line in CHANGELOG.md.',
  );
  process.exit(1);
}
