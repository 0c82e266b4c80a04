/**
 * A browser in a process of its own, driven over Node's IPC by test/helpers/browser.ts and by benchmarks. (The packaged
 * Chromium is an ES module, which jest cannot import, and a crash of the browser's driver must not take a suite along.)
 *
 * Requests are {id, page, call, args}: evaluates window[call](...args) in the page of that name, opened when first
 * named, and answers {id, result} or {id, error}; {id, close: page} closes one. The argument is the entry point of a
 * script that every page loads, or a module (site.mjs) whose files() are the site, where pages are named by paths; a
 * second one is a folder whose files are served by their names. With
 * --check it only says whether a browser can be had: exit code 0 or 1.
 */
import {readdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, extname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';
import {build} from 'esbuild';
import {launch, serve} from './launch.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const wasmFolder = dirname(
  createRequire(import.meta.url).resolve('@tensorflow/tfjs-backend-wasm/package.json'),
);

if (process.argv.includes('--check')) {
  try {
    await (await launch()).close();
    process.exit(0);
  } catch (error) {
    console.error(String(error));
    process.exit(1);
  }
}

/** The entry point as one script for pages, with tfjs's own sources as they are published. */
async function bundled(entry) {
  const {outputFiles} = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: 'iife',
    platform: 'browser',
    target: 'es2022',
    sourcemap: false,
    logLevel: 'error',
    legalComments: 'none',
    // tfjs reaches for these where it believes itself in Node, which a page is not.
    external: ['node:*', 'fs', 'path', 'worker_threads', 'perf_hooks', 'os', 'crypto', 'util'],
  });
  return outputFiles[0].text;
}

const entry = process.argv[2] ?? join(here, 'page.ts');
const wasmNames = ['tfjs-backend-wasm.wasm', 'tfjs-backend-wasm-simd.wasm'];
async function siteOf(path) {
  if (path.endsWith('site.mjs')) {
    return (await import(pathToFileURL(path).href)).files();
  }
  return {
    '/': {type: 'text/html', body: '<!doctype html><meta charset="utf-8"><script src="/page.js"></script>'},
    '/page.js': {type: 'text/javascript', body: await bundled(path)},
  };
}

/** The files of a folder that a page may import or compile. */
const TYPES = {'.mjs': 'text/javascript', '.wasm': 'application/wasm'};
function filesOf(folder) {
  const names = folder === undefined ? [] : readdirSync(folder).filter((name) => extname(name) in TYPES);
  return Object.fromEntries(
    names.map((name) => [
      `/${name}`,
      {
        type: TYPES[extname(name)],
        get body() {
          return readFileSync(join(folder, name));
        },
      },
    ]),
  );
}

const [site, browser] = await Promise.all([siteOf(entry), launch()]);
const server = await serve({
  ...site,
  ...filesOf(process.argv[3]),
  ...Object.fromEntries(
    wasmNames.map((name) => [
      `/${name}`,
      {type: 'application/wasm', body: readFileSync(join(wasmFolder, 'dist', name))},
    ]),
  ),
});

const pages = new Map();

async function pageOf(name) {
  let page = pages.get(name);
  if (page === undefined) {
    page = await (await browser.browser.newContext()).newPage();
    const problems = [];
    page.on('pageerror', (error) => problems.push(String(error.stack ?? error)));
    page.on('crash', () => problems.push('the page crashed'));
    if (process.env.BROWSER_LOG) {
      page.on('console', (message) => console.error(`[${name}] ${message.text()}`));
    }
    await page.goto(server.url + (name.startsWith('/') ? name : '/'));
    page.problems = problems;
    pages.set(name, page);
  }
  return page;
}

async function answer({page: name, call, args, close}) {
  if (close !== undefined) {
    await pages.get(close)?.context().close();
    pages.delete(close);
    return null;
  }
  const page = await pageOf(name);
  const result = await page.evaluate(([f, values]) => window[f](...values), [call, args ?? []]);
  if (page.problems.length > 0) {
    throw new Error(page.problems.splice(0).join('\n'));
  }
  return result;
}

process.on('message', async (request) => {
  try {
    process.send({id: request.id, result: (await answer(request)) ?? null});
  } catch (error) {
    process.send({id: request.id, error: String(error.stack ?? error)});
  }
});

process.on('disconnect', async () => {
  await server.close();
  await browser.close();
  process.exit(0);
});

process.send({ready: true});
