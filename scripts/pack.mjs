/**
 * `npm run pack`: builds, then packs. Installing and packing run no scripts in this repository (.npmrc), so a bare
 * `npm pack` would take whatever dist holds, or none at all; this is the command that releases use. It prints the tarball's name
 * last; further arguments go to `npm pack`.
 */
import {execFileSync} from 'node:child_process';
import {fileURLToPath} from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));
execFileSync(process.execPath, ['scripts/build.mjs'], {stdio: 'inherit'});
execFileSync('npm', ['pack', '--silent', ...process.argv.slice(2)], {stdio: 'inherit'});
