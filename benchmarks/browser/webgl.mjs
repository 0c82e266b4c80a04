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
import {openPage} from './page.mjs';
import {printStock} from './stock_tables.mjs';

const short = process.argv.includes('--short');
const rounds = short ? 3 : 15;
const H = 4;
const r = 64;
const lengths = short ? [256, 1024] : [256, 1024, 4096];
const tokens = short ? 200 : 1000;
const softmaxTokens = short ? 20 : 60;

const page = await openPage(fileURLToPath(new URL('webgl_page.mjs', import.meta.url)));
const {renderer, version, maxTextureSize} = await page.call('start');

console.log('## webgl: ours and stock tfjs\n');
console.log(
  `tfjs ${version}, ${renderer}, textures up to ${maxTextureSize}; ${cpus().length} x ${cpus()[0].model}; B = 1, H = ${H}, r = d = ${r}; ms, median of ${rounds} interleaved runs, ended by reading a number of every result (least to greatest); draws of the calls alone, forward included.\n`,
);
await printStock(page, {lengths, rounds, H, r, tokens, softmaxTokens, work: 'draws'});
await page.close();
