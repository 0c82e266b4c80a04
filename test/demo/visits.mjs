/** What visitors do on the demo page. Each takes a browser and the page's address, and returns what was seen. */
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {openDemo, ready, sideOf, textOf, violationsOf, writeText, written} from './page.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TRAINING_TEXT = 'the cat sat on the mat and the dog sat on the log. '.repeat(20);

/** Writes on a backend with both models. */
export async function writes({browser, url}, backend, settings = {}) {
  const query = {backend, characters: 20, seed: 1, ...settings};
  const {page, seen, close} = await openDemo(browser, url, {query});
  const requestsAtLoad = seen.requests.length;
  await writeText(page);
  const result = {
    backend: await page.getAttribute('#backends :checked', 'value'),
    status: await textOf(page, '#status'),
    linear: await sideOf(page, 'linear'),
    softmax: await sideOf(page, 'softmax'),
    rows: await page.$$eval('#figures tr', (rows) =>
      rows.map((row) => [...row.cells].map(({textContent}) => textContent).join(' ')),
    ),
    heads: await page.$$eval('#heat-maps canvas', (canvases) =>
      canvases.map((canvas) => {
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const colours = new Set();
        for (let i = 0; i < data.length; i += 4) colours.add(data.slice(i, i + 3).join());
        return {size: `${canvas.height}x${canvas.width}`, colours: colours.size};
      }),
    ),
    recent: await page.$$eval('#recent tr', (rows) =>
      rows.map((row) => ({
        characters: [...row.querySelectorAll('td:not(.share)')].map(({textContent}) => textContent).join(''),
        total: [...row.querySelectorAll('td[title]')].reduce(
          (sum, {title}) => sum + Number.parseFloat(title),
          0,
        ),
        share: Number.parseFloat(row.querySelector('.share').textContent),
      })),
    ),
    address: new URL(page.url()).search,
    later: seen.requests.slice(requestsAtLoad).filter((address) => !address.startsWith('blob:')),
    elsewhere: seen.requests.filter((address) => !address.startsWith(url) && !/^(blob|data):/.test(address)),
    problems: seen.problems,
  };
  await close();
  return result;
}

/** The page as it opens, before anything is done, and after one character. */
export async function opens({browser, url}, query) {
  const {page, seen, close} = await openDemo(browser, url, {query});
  const result = {
    status: await textOf(page, '#status'),
    figures: (await sideOf(page, 'linear')).figures,
    fields: await page.$$eval('#writing-form [type="number"]', (fields) =>
      Object.fromEntries(fields.map(({id, value}) => [id, value])),
    ),
    canRestore: await page.isEnabled('#run-restore'),
  };
  await page.fill('#characters', '1');
  await writeText(page);
  const after = {status: await textOf(page, '#status'), figures: (await sideOf(page, 'linear')).figures};
  await close();
  return {...result, after, problems: seen.problems};
}

/** Starts a long text, stops it, and copies it. */
export async function stops({browser, url}) {
  const {page, seen, close} = await openDemo(browser, url, {
    query: {backend: 'wasm', characters: 100000},
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  await page.focus('#prompt');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelector('#linear-text').textContent.length > 100);
  await page.click('#stop');
  await written(page);
  const {text} = await sideOf(page, 'linear');
  await page.click('#copy');
  await page.waitForFunction(() => document.querySelector('#status').textContent === 'Copied.');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  await close();
  return {text, copied, problems: seen.problems};
}

/** The page where the browser lacks a backend: its worker is told so before it starts. */
export async function lacksWebGPU({browser, url}) {
  const {page, seen, close} = await openDemo(
    {
      async newContext(options) {
        const context = await browser.newContext(options);
        await context.route(/worker.*\.js$/, async (route) => {
          const body = await (await route.fetch()).text();
          await route.fulfill({
            contentType: 'text/javascript',
            body: `Object.defineProperty(navigator, 'gpu', {value: undefined});${body}`,
          });
        });
        return context;
      },
    },
    url,
    {query: {backend: 'webgpu'}},
  );
  const result = {
    disabled: await page.isDisabled('#backend-webgpu'),
    reason: await textOf(page, '.backend:has(#backend-webgpu) small'),
    chosen: await page.getAttribute('#backends :checked', 'value'),
    problems: seen.problems,
  };
  await close();
  return result;
}

/** Trains, continues, saves in both ways, comes back, continues, and writes with what was trained. */
export async function trains({browser, url}) {
  const {page, seen, close} = await openDemo(browser, url, {query: {backend: 'wasm', characters: 30}});
  const steps = [];
  const train = async () => {
    await page.click('#training-start');
    await page.waitForFunction(() =>
      /steps done|[a-z]: /.test(document.querySelector('#training-status').textContent),
    );
    steps.push(await textOf(page, '#training-status'));
  };
  await page.fill('#training-text', TRAINING_TEXT);
  await page.selectOption('#training-size', 'tiny');
  await page.fill('#training-steps', '8');
  await train();
  await train();
  await page.click('#run-keep');
  await page.waitForFunction(() => /Kept/.test(document.querySelector('#training-status').textContent));
  const [file] = await Promise.all([page.waitForEvent('download'), page.click('#run-save')]);
  const saved = readFileSync(await file.path());

  const restored = [];
  const restore = async (how) => {
    await page.reload();
    await ready(page);
    await how();
    await page.waitForFunction(() => document.querySelector('#training-status').textContent !== '');
    restored.push(await textOf(page, '#training-status'));
    await page.fill('#training-steps', '8');
    await train();
  };
  await restore(() => page.click('#run-restore'));
  await restore(() =>
    page.setInputFiles('#run-open', {name: 'run.tfla', mimeType: 'application/octet-stream', buffer: saved}),
  );
  const workers = page.workers().length;
  await page.fill('#prompt', 'the cat ');
  await page.click('#run-use');
  await page.waitForFunction(() =>
    /writes with/.test(document.querySelector('#training-status').textContent),
  );
  await writeText(page);
  const {text} = await sideOf(page, 'linear');
  const model = await textOf(page, '#linear-model');
  await page.setInputFiles('#run-open', {
    name: 'run.tfla',
    mimeType: 'application/octet-stream',
    buffer: saved.subarray(0, saved.length - 7),
  });
  await page.waitForFunction(() =>
    /cannot be opened/.test(document.querySelector('#training-status').textContent),
  );
  const refused = await textOf(page, '#training-status');
  await close();
  return {steps, restored, workers, text, model, refused, problems: seen.problems};
}

/** The page as it looks to axe-core, and whether it fits. */
export async function isAccessible({browser, url}, {colorScheme, width}) {
  const {page, seen, close} = await openDemo(browser, url, {
    ...{colorScheme, viewport: {width, height: 800}, reducedMotion: 'reduce'},
    query: {backend: 'wasm', characters: 150},
  });
  await writeText(page);
  await page.click('summary');
  const result = {
    ...(await violationsOf(page, axe)),
    overflow: await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth),
    transition: await page.evaluate(
      () => getComputedStyle(document.querySelector('#write')).transitionDuration,
    ),
    problems: seen.problems,
  };
  if (process.env.SCREENSHOTS) {
    await page.screenshot({path: `${process.env.SCREENSHOTS}/${colorScheme}-${width}.png`, fullPage: true});
  }
  await close();
  return result;
}
