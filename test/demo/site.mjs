/** The demo page as `npm run demo:build` makes it, served from a folder deep inside a host: its addresses are relative. */
import {mkdtempSync, readdirSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {extname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'vite';
import {serve} from '../browser/launch.mjs';

const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
  '.bin': 'application/octet-stream',
};
const FOLDER = '/some/folder/';

/** @returns files: {name: bytes} of what was built. */
export async function buildDemo() {
  const outDir = mkdtempSync(join(tmpdir(), 'demo-'));
  try {
    await build({
      configFile: fileURLToPath(new URL('../../examples/browser/vite.config.mjs', import.meta.url)),
      logLevel: 'error',
      build: {outDir},
    });
    const names = readdirSync(outDir, {recursive: true, withFileTypes: true})
      .filter((entry) => entry.isFile())
      .map(({parentPath, name}) => join(parentPath, name));
    return Object.fromEntries(names.map((name) => [name.slice(outDir.length + 1), readFileSync(name)]));
  } finally {
    rmSync(outDir, {recursive: true, force: true});
  }
}

/** @returns {url, close()}; the page is at the url. */
export async function serveDemo(files) {
  const site = Object.fromEntries(
    Object.entries(files).map(([name, body]) => [
      FOLDER + name,
      {type: TYPES[extname(name)] ?? 'application/octet-stream', body},
    ]),
  );
  const server = await serve({...site, [FOLDER]: site[`${FOLDER}index.html`]});
  return {url: server.url + FOLDER, close: server.close};
}
