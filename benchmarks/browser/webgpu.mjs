/**
 * Our webgpu kernels beside stock tfjs compositions, and beside onnxruntime-web's webgpu LinearAttention, in one headless
 * Chromium, interleaved, results compared first. Prints Markdown.
 *
 *     node benchmarks/browser/webgpu.mjs [--short]
 *
 * On a machine without a GPU everything runs on a software device: the ratios are information, counts of dispatches and
 * compilations are facts. CHROMIUM_PATH chooses another browser, which may have a GPU. The second part needs the peers
 * (npm ci in benchmarks/peers) and is left out without them.
 */
import {existsSync} from 'node:fs';
import {cpus} from 'node:os';
import {fileURLToPath} from 'node:url';
import {median} from '../lib/statistics.mjs';
import {digits} from '../lib/tables.mjs';
import {openPage} from './page.mjs';
import {cell, printStock} from './stock_tables.mjs';

const short = process.argv.includes('--short');
const rounds = short ? 3 : 15;
const H = 4;
const r = 64;
const lengths = short ? [256, 1024] : [256, 1024, 4096];
const tokens = short ? 200 : 1000;
const softmaxTokens = short ? 20 : 60;
const peerFolder = fileURLToPath(new URL('../peers/node_modules/onnxruntime-web/dist', import.meta.url));
const hasPeer = existsSync(peerFolder);

const entry = fileURLToPath(new URL('webgpu_page.mjs', import.meta.url));
const page = await openPage(entry, hasPeer ? peerFolder : undefined);
const {renderer, version} = await page.call('start');

console.log('## webgpu: ours and stock tfjs\n');
console.log(
  `tfjs ${version}, ${renderer}; ${cpus().length} x ${cpus()[0].model}; B = 1, H = ${H}, r = d = ${r}; ms, median of ${rounds} interleaved runs, ended by reading a number of every result (least to greatest); dispatches of the calls alone, forward included.\n`,
);
await printStock(page, {lengths, rounds, H, r, tokens, softmaxTokens, work: 'dispatches'});

if (hasPeer) {
  await page.call('loadOnnxruntime');
  const heads = 8;
  console.log("\n## webgpu: ours and onnxruntime-web's com.microsoft.LinearAttention\n");
  console.log(
    `B = 1, H = ${heads}, r = d = ${r}, [B,N,H,.]; ms, median of ${rounds} interleaved runs, ended by reading the output. Ours includes feature map and normaliser; theirs is given mapped queries and keys. "In segments" is the form for devices that a walk over whole sequences does not fill.\n`,
  );
  console.log(
    '| N | ours | ours in segments of 128 | theirs, numerator only | theirs with normaliser | theirs (numerator only) / ours |',
  );
  console.log('| --- | --- | --- | --- | --- | --- |');
  for (const N of short ? [128, 1024] : [128, 1024, 4096]) {
    const request = {N, H: heads, r, rounds: N > 2000 ? Math.ceil(rounds / 3) : rounds};
    const times = await page.call('besideOnnxruntime', request);
    const ratio = digits(median(times.raw) / median(times.ours));
    console.log(
      `| ${N} | ${cell(times.ours)} | ${cell(times.oursInSegments)} | ${cell(times.raw)} | ${cell(times.normalised)} | **${ratio}x** |`,
    );
  }
  const steps = await page.call('stepsBesideOnnxruntime', {H: heads, r, tokens: short ? 30 : 200});
  const [ours, raw] = [steps.ours.slice(10), steps.raw.slice(10)];
  console.log(
    `\nA decoding step: ours ${cell(ours)}, theirs (numerator only) ${cell(raw)}: **${digits(median(raw) / median(ours))}x**.`,
  );
}
await page.close();
