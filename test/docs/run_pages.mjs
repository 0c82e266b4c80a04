/**
 * Opens the documents' pages in a headless Chromium and writes what they printed: node run_pages.mjs LIST RESULTS. What
 * they load from the content delivery network comes from here: the built package, and tfjs as it is installed. A page is
 * done when it has printed all that it promises, or has failed.
 */
import {existsSync, readdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {dirname, extname, join, relative} from 'node:path';
import {fileURLToPath} from 'node:url';
import {launch, serve} from '../browser/launch.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const [list, results] = process.argv.slice(2);
const {folder, pages} = JSON.parse(readFileSync(list, 'utf8'));
const TYPES = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};
const typeOf = (path) => TYPES[extname(path)] ?? 'application/octet-stream';

/** The file that the network would send for the path after /npm/: `name@version/path`, or a package's default. */
function fileOf(path) {
  const [, name, inside] = /^((?:@[^/]+\/)?[^/@]+)(?:@[^/]+)?\/?(.*)$/.exec(path);
  const installed = name === 'tfjs-linear-attention' ? root : join(root, 'node_modules', name);
  const {jsdelivr, unpkg} = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
  return join(installed, inside || jsdelivr || unpkg);
}

const files = {};
for (const name of readdirSync(folder, {recursive: true})) {
  const path = join(folder, name);
  if (!name.startsWith('node_modules') && statSync(path).isFile()) {
    files[`/${name}`] = {type: typeOf(name), body: readFileSync(path)};
  }
}
const [server, browser] = await Promise.all([serve(files), launch()]);
const done = [];
for (const {name, file, promises} of pages) {
  const context = await browser.browser.newContext();
  await context.route('https://cdn.jsdelivr.net/npm/**', (route) => {
    const path = fileOf(new URL(route.request().url()).pathname.slice('/npm/'.length));
    return existsSync(path)
      ? route.fulfill({
          contentType: typeOf(path),
          body: readFileSync(path),
          headers: {'Access-Control-Allow-Origin': '*'},
        })
      : route.fulfill({status: 404});
  });
  const page = await context.newPage();
  const printed = [];
  const problems = [];
  const ended = new Promise((resolve) => {
    const look = () => {
      if (problems.length > 0 || promises.every((text) => printed.includes(text))) resolve();
    };
    page.on('console', (message) => {
      printed.push(message.text());
      if (message.type() === 'error') problems.push(message.text());
      look();
    });
    page.on('pageerror', (error) => {
      problems.push(String(error.stack ?? error));
      look();
    });
    setTimeout(() => resolve(problems.push('it did not end in time')), 90000).unref();
  });
  await page.goto(`${server.url}/${relative(folder, file)}`);
  await ended;
  done.push({name, printed, problems});
  await context.close();
}
await server.close();
await browser.close();
writeFileSync(results, JSON.stringify(done));
process.exit(0);
