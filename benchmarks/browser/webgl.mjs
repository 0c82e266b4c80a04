/**
 * Our webgl kernels beside stock tfjs compositions (benchmarks/peers/tfjs_chunked.mjs at its best chunk length), in one
 * headless Chromium, interleaved, results compared first. Prints Markdown.
 *
 *     node benchmarks/browser/webgl.mjs [--short]
 *
 * On a machine without a GPU everything runs on a software GL: the ratios are information, counts of draws and
 * compilations are facts. CHROMIUM_PATH chooses another browser, which may have a GPU.
 */
import {cpus} from 'node:os';
import {fileURLToPath} from 'node:url';
import {median} from '../lib/statistics.mjs';
import {digits} from '../lib/tables.mjs';
import {openPage} from './page.mjs';

const short = process.argv.includes('--short');
const rounds = short ? 3 : 15;
const H = 4;
const r = 64;
const lengths = short ? [256, 1024] : [256, 1024, 4096];
const TOKENS = short ? 200 : 1000;
const SOFTMAX_TOKENS = short ? 20 : 60;

const page = await openPage(fileURLToPath(new URL('webgl_page.mjs', import.meta.url)));
const {renderer, version, maxTextureSize} = await page.call('start');

console.log('## webgl: ours and stock tfjs\n');
console.log(
  `tfjs ${version}, ${renderer}, textures up to ${maxTextureSize}; ${cpus().length} x ${cpus()[0].model}; B = 1, H = ${H}, r = d = ${r}; ms, median of ${rounds} interleaved runs, ended by reading a number of every result (least to greatest); draws of the calls alone, forward included.\n`,
);
console.log('| | N | ours | stock | stock / ours | draws ours | draws stock |');
console.log('| --- | --- | --- | --- | --- | --- | --- |');
const cell = (times) =>
  `${digits(median(times))} (${digits(Math.min(...times))} to ${digits(Math.max(...times))})`;
for (const [name, causal, backward] of [
  ['causal forward', true, false],
  ['causal forward + backward', true, true],
  ['non-causal forward', false, false],
]) {
  for (const N of lengths) {
    const request = {N, H, r, causal, backward, rounds: N > 2000 ? Math.ceil(rounds / 3) : rounds};
    const {ours, stock, draws} = await page.call('compare', request);
    const ratio = digits(median(stock) / median(ours));
    console.log(
      `| ${name} | ${N} | ${cell(ours)} | ${cell(stock)} | **${ratio}x** | ${draws.ours} | ${draws.stock} |`,
    );
  }
}

console.log('\n### Decoding, one token at a time\n');
console.log(
  '| | tokens | ms a token, first 10 left out | last fifth / first fifth | programs compiled after the first token |',
);
console.log('| --- | --- | --- | --- | --- |');
for (const [name, kind, tokens] of [
  ['ours', 'ours', TOKENS],
  ['stock softmax, keys and values grow', 'softmax', SOFTMAX_TOKENS],
]) {
  const {ms, compiles} = await page.call('decode', kind, tokens, H, r);
  const settled = ms.slice(10);
  const fifth = Math.ceil(settled.length / 5);
  const flat = median(settled.slice(-fifth)) / median(settled.slice(0, fifth));
  console.log(`| ${name} | ${tokens} | ${cell(settled)} | ${digits(flat)} | ${compiles} |`);
}
await page.close();
