/**
 * A headless Chromium with WebGL2 and WebGPU on a software GPU, and a local server for its pages.
 *
 * The browser is CHROMIUM_PATH, else an installed chromium, else the one inside the npm package @sparticuz/chromium
 * (unpacked into a temporary folder of this run, removed at close).
 */
import {spawnSync} from 'node:child_process';
import {existsSync, mkdtempSync, rmSync} from 'node:fs';
import {createServer} from 'node:http';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {chromium} from 'playwright-core';

/** Flags that give WebGL2 and WebGPU without a GPU. */
const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
  '--enable-unsafe-webgpu',
  '--enable-features=Vulkan,WebGPU',
  '--use-webgpu-adapter=swiftshader',
  '--ignore-gpu-blocklist',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** The path of a browser and the environment it needs. `cleanup` removes what was unpacked for it. */
export async function findBrowser() {
  const given = process.env.CHROMIUM_PATH;
  if (given) {
    if (!existsSync(given)) throw new Error(`CHROMIUM_PATH is ${given}, where there is no file.`);
    return {path: given, env: {}, cleanup() {}};
  }
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    const found = spawnSync('which', [name], {encoding: 'utf8'}).stdout?.trim();
    if (found) return {path: found, env: {}, cleanup() {}};
  }
  const folder = mkdtempSync(join(tmpdir(), 'chromium-'));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    const {default: packed} = await import('@sparticuz/chromium');
    const path = await packed.executablePath();
    const libraries = [dirname(path), process.env.LD_LIBRARY_PATH].filter(Boolean).join(':');
    return {
      path,
      env: {LD_LIBRARY_PATH: libraries},
      cleanup: () => rmSync(folder, {recursive: true, force: true}),
    };
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  }
}

/** Serves `{path: {type, body, headers?}}` on a free port of localhost (WebGPU needs a secure context, which localhost is). */
export async function serve(files, headers = {}) {
  const server = createServer((request, response) => {
    const file = files[new URL(request.url, 'http://localhost').pathname];
    response.writeHead(file ? 200 : 404, {
      'Content-Type': file?.type ?? 'text/plain',
      ...headers,
      ...file?.headers,
    });
    response.end(file?.body ?? 'not found');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${server.address().port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        // Chromium opens connections in advance; one that never asked for anything would hold the server for a minute.
        server.closeAllConnections();
      }),
  };
}

/** Starts the browser. `close()` ends it and removes its files. */
export async function launch(extraFlags = []) {
  const {path, env, cleanup} = await findBrowser();
  const browser = await chromium.launch({
    executablePath: path,
    args: [...FLAGS, ...extraFlags],
    ignoreDefaultArgs: ['--headless', '--disable-gpu'],
    env: {...process.env, ...env},
  });
  return {
    browser,
    path,
    async close() {
      await browser.close();
      cleanup();
    },
  };
}
