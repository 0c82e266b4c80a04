/**
 * The demo page (examples/browser) in one headless Chromium: how large and how fast it loads, what axe-core finds, and
 * the time to the first, the 1,000th and the 20,000th token on each backend, linear and softmax side by side. Writes
 * benchmarks/results/demo.md.
 *
 *     npm run build && node benchmarks/browser/demo.mjs [--backends wasm,cpu,webgpu,webgl] [--minutes 8,4,2,2] [--quick]
 *
 * Each backend gets at most its --minutes (one number: all the same); what was not reached by then says so. Without a GPU webgl and webgpu
 * run on a software GPU: their times are information only. CHROMIUM_PATH chooses another browser.
 */
import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {brotliCompressSync, gzipSync} from 'node:zlib';
import {launch} from '../../test/browser/launch.mjs';
import {openDemo, sideOf, violationsOf, writeText} from '../../test/demo/page.mjs';
import {buildDemo, serveDemo} from '../../test/demo/site.mjs';
import {load, machine, machineLine} from '../lib/machine.mjs';

const {values} = parseArgs({
  options: {
    backends: {type: 'string', default: 'wasm,cpu,webgpu,webgl'},
    minutes: {type: 'string', default: '8,4,2,2'},
    quick: {type: 'boolean', default: false},
  },
});
const characters = values.quick ? 1000 : 20_000;
const allowed = (values.quick ? '0.5' : values.minutes).split(',').map(Number);
const minutesFor = (i) => allowed[Math.min(i, allowed.length - 1)];
const LOADS = 3;
const FIGURES = ['first token', '1,000 tokens', '20,000 tokens'];

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const files = await buildDemo();
const server = await serveDemo(files);
const {browser, close} = await launch();

const kB = (bytes) => `${(bytes / 1000).toFixed(0)} kB`;
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const row = (cells) => `| ${cells.join(' | ')} |`;
const table = (head, rows) => [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');

function sizes() {
  const groups = [
    ['page, styles, script', /\.(html|css|svg)$|^assets\/index-.*\.js$/],
    ['worker: tfjs with four backends, this package', /worker.*\.js$/],
    ["tfjs's wasm files", /\.wasm$/],
    ['two models', /^models\//],
  ];
  return groups.map(([what, pattern]) => {
    const all = Object.entries(files).filter(([name]) => pattern.test(name));
    const sum = (size) => all.reduce((total, [, bytes]) => total + size(bytes), 0);
    return [
      what,
      kB(sum((bytes) => bytes.length)),
      kB(sum((bytes) => gzipSync(bytes).length)),
      kB(sum((bytes) => brotliCompressSync(bytes).length)),
    ];
  });
}

/** Milliseconds from the start of the navigation. */
async function loading(backend) {
  const runs = [];
  for (let i = 0; i < LOADS; i++) {
    const {page, seen, close: leave} = await openDemo(browser, server.url, {query: {backend}});
    const times = await page.evaluate(() => ({
      paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
      ready: performance.getEntriesByName('demo-ready')[0].startTime,
    }));
    const blocked = await page.evaluate(
      () =>
        new Promise((resolve) => {
          const observer = new PerformanceObserver((list) =>
            resolve(list.getEntries().reduce((sum, {duration}) => sum + Math.max(0, duration - 50), 0)),
          );
          observer.observe({type: 'longtask', buffered: true});
          setTimeout(() => resolve(0), 200);
        }),
    );
    runs.push({...times, blocked, requests: seen.requests.length});
    await leave();
  }
  const of = (name) => median(runs.map((entry) => entry[name]));
  return [backend, ...['paint', 'ready', 'blocked'].map((name) => of(name).toFixed(0)), of('requests')];
}

async function writing(backend, minutes) {
  const limit = minutes * 60_000;
  console.error(`writing on ${backend}`);
  const {
    page,
    seen,
    close: leave,
  } = await openDemo(browser, server.url, {query: {backend, characters, seed: 1}});
  const timer = setTimeout(() => page.click('#stop').catch(() => {}), limit);
  await writeText(page, limit + 120_000);
  clearTimeout(timer);
  const result = {
    rows: await page.$$eval('#figures tr', (rows) =>
      rows.map((entry) => [...entry.cells].map((cell) => cell.textContent)),
    ),
    sides: [await sideOf(page, 'linear'), await sideOf(page, 'softmax')],
    problems: seen.problems,
  };
  await leave();
  const failures = [...result.problems, ...result.sides.map(({end}) => end).filter((end) => end !== '')];
  if (failures.length > 0) throw new Error(`on ${backend}: ${failures.join('; ')}`);
  return {backend, ...result};
}

const backends = values.backends.split(',');
const loads = [];
for (const backend of backends) loads.push(await loading(backend));
const checks = [];
for (const [colorScheme, width] of [
  ['light', 1280],
  ['dark', 1280],
  ['light', 360],
  ['dark', 360],
]) {
  const {page, close: leave} = await openDemo(browser, server.url, {
    ...{colorScheme, viewport: {width, height: 800}},
    query: {backend: 'wasm', characters: 150},
  });
  await writeText(page);
  await page.click('summary');
  const {violations, passes} = await violationsOf(page, axe);
  checks.push([
    colorScheme,
    width,
    passes,
    violations.length,
    violations.map(({id}) => id).join(', ') || 'none',
  ]);
  await leave();
}
const loadBefore = load();
const written = [];
for (const [i, backend] of backends.entries()) written.push(await writing(backend, minutesFor(i)));

const version = browser.version();
await close();
await server.close();

const milestones = written.flatMap(({backend, sides}) =>
  sides.map(({figures}, side) => [
    ...[backend, ['linear', 'softmax'][side]],
    ...FIGURES.map((name) => figures[name] || 'not reached'),
    ...[figures['position'], figures['state'] ?? figures['cache']],
  ]),
);
const positions = written.flatMap(({backend, rows}) => rows.map((cells) => [backend, ...cells]));
const text = `# The demo page

    npm run build && node benchmarks/browser/demo.mjs

${machineLine(machine())}; load ${loadBefore} before the measurements of writing. Chromium ${version}, headless, software GPU: the times of webgl
and webgpu are information only.

## Sizes

As \`npm run demo:build\` writes it.

${table(['what', 'bytes', 'gzip', 'brotli'], sizes())}

## Loading

From the start of the navigation, from a server on the same machine; median of ${LOADS}, each in a fresh context. "Ready" has both models on
the backend, with their shaders compiled. "Blocked" is what tasks of the page's main thread take beyond 50 ms each.

${table(['backend', 'first paint, ms', 'ready, ms', 'blocked, ms', 'requests'], loads)}

## Accessibility

axe-core, all its rules, after writing, with the table open.

${table(['colours', 'width', 'rules passed', 'violations', 'which'], checks)}

## Writing

Both models, ${characters.toLocaleString('en-US')} tokens asked for, temperature 0.7, seed 1, in turns of equal time, at most ${backends.map((backend, i) => `${minutesFor(i)} minutes on ${backend}`).join(', ')}.
Times are of a model's own work: reading the prompt or the last character, and choosing the next. The state is that at the last position.

${table(['backend', 'attention', ...FIGURES, 'last position', 'state'], milestones)}

Medians around a position:

${table(['backend', 'position', 'linear, a token', 'linear, state', 'softmax, a token', 'softmax, cache'], positions)}
`;
if (values.quick) console.log(text);
else writeFileSync(fileURLToPath(new URL('../results/demo.md', import.meta.url)), text);
