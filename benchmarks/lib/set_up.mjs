/** What must be in place before a case runs: the build, and the peers. */
import {spawnSync} from 'node:child_process';
import {existsSync, readFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PEERS = fileURLToPath(new URL('../peers', import.meta.url));

const run = (command, args, cwd) =>
  spawnSync(command, args, {
    cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  }).status === 0;

export function build() {
  if (!run(process.execPath, ['scripts/build.mjs', '--if-stale'], ROOT)) throw new Error('the build failed');
}

/** True when every package of the peers' lockfile that this machine needs is there. */
function peersAreInstalled() {
  const installed = `${PEERS}/node_modules/.package-lock.json`;
  if (!existsSync(installed)) return false;
  const packages = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;
  const have = packages(installed);
  return Object.entries(packages(`${PEERS}/package-lock.json`)).every(
    ([path, {version, optional}]) => path === '' || optional || have[path]?.version === version,
  );
}

/** Installs the peers with `npm ci`; false when that fails. About 440 MB. */
export function installPeers() {
  if (peersAreInstalled()) return true;
  console.error('bench: installing the peers into benchmarks/peers (about 440 MB) ...');
  return run('npm', ['ci', '--no-audit', '--no-fund'], PEERS);
}
