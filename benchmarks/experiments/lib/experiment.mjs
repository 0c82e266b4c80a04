/** What every experiment starts and ends with: flags, backend, seeded numbers, the files of its result. */
import {mkdirSync, writeFileSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {load, machine, machineLine} from '../../lib/machine.mjs';
import {build} from '../../lib/set_up.mjs';

const RESULTS = fileURLToPath(new URL('../results', import.meta.url));

/**
 * Reads --quick (small sizes, printed and not kept) and the experiment's own flags; builds the package and starts the
 * backend. @param name of the result's files
 */
export async function start(name, {options = {}, backend = 'wasm'} = {}) {
  const {values} = parseArgs({
    options: {quick: {type: 'boolean', default: false}, out: {type: 'string', default: RESULTS}, ...options},
  });
  build();
  const {tf, tfla, useBackend} = await import('../../lib/ours.mjs');
  await useBackend(backend);
  tf.enableProdMode();
  tfla.patches.all();
  const began = performance.now();
  const {quick, out} = values;
  return {
    ...{tf, tfla, quick, values},
    log: (text) => console.error(`[${((performance.now() - began) / 1000).toFixed(0)} s] ${text}`),
    /** Prints the Markdown; keeps it with the plots unless quick. @param plots {ending: SVG} */
    finish: (title, parts, plots = {}) => {
      const minutes = ((performance.now() - began) / 60000).toFixed(1);
      const command = `node benchmarks/experiments/${name}.mjs${quick ? ' --quick' : ''}`;
      const pictures = Object.keys(plots).map((ending) => `![${title}](${name}_${ending}.svg)`);
      const ran = `\`${command}\`, ${minutes} minutes, backend ${backend}, ${machineLine(machine())}; load average at the end ${load()}.`;
      const text = [
        `# ${title}`,
        ...(quick ? ['Quick: small sizes, to see that it runs. Not a result.'] : []),
        ran,
        ...parts,
        ...pictures,
      ].join('\n\n');
      console.log(text);
      if (quick) return;
      mkdirSync(out, {recursive: true});
      writeFileSync(`${out}/${name}.md`, `${text}\n`);
      for (const [ending, svg] of Object.entries(plots)) writeFileSync(`${out}/${name}_${ending}.svg`, svg);
    },
  };
}

export const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

export const mean = (list) => list.reduce((a, b) => a + b, 0) / list.length;

/** Uniform numbers in [0, 1) and whole ones below n (mulberry32), the same for the same seed. */
export function generator(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(uniform() * n);
  return {
    uniform,
    below,
    /** Numbers 0..n-1 in a random order. */
    shuffled: (n) => {
      const order = Array.from({length: n}, (_, i) => i);
      for (let i = n - 1; i > 0; i--) {
        const j = below(i + 1);
        [order[i], order[j]] = [order[j], order[i]];
      }
      return order;
    },
  };
}
