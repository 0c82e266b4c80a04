/** Measures beside_stock.mjs in an open page, and prints Markdown tables. */
import {median} from '../lib/statistics.mjs';
import {digits} from '../lib/tables.mjs';

/** Median (least to greatest). */
export const cell = (times) =>
  `${digits(median(times))} (${digits(Math.min(...times))} to ${digits(Math.max(...times))})`;

/** @param work what a GPU is asked to do in: 'draws' or 'dispatches' */
export async function printStock(page, {lengths, rounds, H, r, tokens, softmaxTokens, work}) {
  console.log(`| | N | ours | stock | stock / ours | ${work} ours | ${work} stock |`);
  console.log('| --- | --- | --- | --- | --- | --- | --- |');
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
  for (const [name, kind, count] of [
    ['ours', 'ours', tokens],
    ['stock softmax, keys and values grow', 'softmax', softmaxTokens],
  ]) {
    const {ms, compiles} = await page.call('decode', kind, count, H, r);
    const settled = ms.slice(10);
    const fifth = Math.ceil(settled.length / 5);
    const flat = median(settled.slice(-fifth)) / median(settled.slice(0, fifth));
    console.log(`| ${name} | ${count} | ${cell(settled)} | ${digits(flat)} | ${compiles} |`);
  }
}
