/**
 * The SIMD kernels of the wasm backend in one headless Chromium, on one thread: beside onnxruntime-web's wasm
 * LinearAttention, stock tfjs compositions, and XNNPACK. Interleaved, results compared first. Prints Markdown.
 *
 *     node benchmarks/browser/wasm.mjs [--short]
 *
 * CHROMIUM_PATH chooses another browser. What concerns onnxruntime-web needs the peers (npm ci in benchmarks/peers) and is
 * left out without them. Ratios that are asked for on Node are asked for at 85 % here: V8's register allocation differs.
 */
import {existsSync} from 'node:fs';
import {cpus} from 'node:os';
import {fileURLToPath} from 'node:url';
import {load} from '../lib/machine.mjs';
import {median} from '../lib/statistics.mjs';
import {digits} from '../lib/tables.mjs';
import {openPage} from './page.mjs';
import {cell} from './stock_tables.mjs';

const PART = 0.85;
const H = 8;
const r = 64;
const short = process.argv.includes('--short');
const processes = short ? 1 : 3;
const peerFolder = fileURLToPath(new URL('../peers/node_modules/onnxruntime-web/dist', import.meta.url));
const hasPeer = existsSync(peerFolder);
const entry = fileURLToPath(new URL('wasm_page.mjs', import.meta.url));

/** {name of the row: {ours: [[ms]], theirs: [[ms]], asked}}; one list of timings a browser. */
const rows = new Map();
function add(name, asked, ours, theirs) {
  const row = rows.get(name) ?? {asked, ours: [], theirs: []};
  row.ours.push(ours);
  row.theirs.push(theirs);
  rows.set(name, row);
}

async function measure(page) {
  const about = await page.call('start', hasPeer);
  const stock = {H, r, causal: true, rounds: short ? 3 : 9};
  for (const N of short ? [1024] : [1024, 4096]) {
    const forward = await page.call('compare', {...stock, N, backward: false});
    add(`stock composition, forward, N=${N}`, 18, forward.ours, forward.stock);
    const both = await page.call('compare', {...stock, N, backward: true});
    add(`stock composition, forward and backward, N=${N}`, 15, both.ours, both.stock);
  }
  for (const [N, asked, calls] of hasPeer
    ? [
        [128, 2.5, 20],
        [1024, 2.4, 4],
        [4096, 2.6, 1],
      ]
    : []) {
    const {ours, theirs} = await page.call('besideOnnxruntime', {N, H, r, calls});
    add(`onnxruntime-web, raw, N=${N}`, asked, ours, theirs);
  }
  if (hasPeer) {
    const {ours, theirs} = await page.call('stepBesideOnnxruntime', {H, r, calls: 100});
    add('onnxruntime-web, decoding step', 8, ours, theirs);
  }
  const {XNNPACK, ...forms} = await page.call('products', {size: short ? 256 : 1024});
  for (const [form, ours] of Object.entries(forms)) {
    add(`product ${form}, XNNPACK`, 1.35, ours, XNNPACK);
  }
  return about;
}

let about;
const before = load();
for (let i = 0; i < processes; i++) {
  const page = await openPage(entry, hasPeer ? peerFolder : undefined);
  about = await measure(page);
  await page.close();
}
console.log('## wasm in Chromium\n');
console.log(
  `tfjs ${about.version}, ${about.browser}; ${cpus().length} x ${cpus()[0].model}; B = 1, H = ${H}, r = d = ${r}, causal, one thread; ms, median of ${processes} browsers' medians (least to greatest timing); load average ${before} to ${load()}.\n`,
);
console.log('| against | ours | theirs | theirs / ours (least to greatest browser) | asked | |');
console.log('| --- | --- | --- | --- | --- | --- |');
for (const [name, {asked, ours, theirs}] of rows) {
  const ratios = ours.map((timings, i) => median(theirs[i]) / median(timings));
  const ratio = `**${digits(median(ratios))}x** (${digits(Math.min(...ratios))} to ${digits(Math.max(...ratios))})`;
  const least = asked * PART;
  const verdict = median(ratios) >= least ? 'met' : '**not met**';
  console.log(
    `| ${name} | ${cell(ours.flat())} | ${cell(theirs.flat())} | ${ratio} | ${digits(least)} | ${verdict} |`,
  );
}
