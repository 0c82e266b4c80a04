/** What every experiment starts and ends with: flags, backend, what it has measured so far, the files of its result. */
import {existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync} from 'node:fs';
import {dirname} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {load, machine, machineLine} from '../../lib/machine.mjs';
import {build} from '../../lib/set_up.mjs';

const RESULTS = fileURLToPath(new URL('../results', import.meta.url));
/** What a person has written about a result stands below this line of its file, and outlives the next run. */
const NOTES = '\n## Notes on the run of ';

/**
 * Reads --quick (small sizes, printed and not kept), --backend (wasm, node or cpu), --out, --keep and the experiment's own
 * flags; builds the package and starts the backend, with one thread.
 *
 * @param name of the result's files
 */
export async function start(name, {options = {}, backend: usual = 'wasm'} = {}) {
  const {values} = parseArgs({
    options: {
      quick: {type: 'boolean', default: false},
      keep: {type: 'boolean', default: false},
      backend: {type: 'string', default: usual},
      out: {type: 'string', default: RESULTS},
      ...options,
    },
  });
  build();
  const {tf, tfla, useBackend} = await import('../../lib/ours.mjs');
  const {backend} = values;
  if (backend === 'node') {
    process.env.TF_CPP_MIN_LOG_LEVEL ??= '2';
    process.env.TF_NUM_INTRAOP_THREADS ??= '1';
    process.env.TF_NUM_INTEROP_THREADS ??= '1';
    await import('@tensorflow/tfjs-node');
  }
  await useBackend(backend === 'node' ? 'tensorflow' : backend);
  tf.enableProdMode();
  tfla.patches.all();
  const {quick, out, keep} = values;
  const began = performance.now();
  const store = stored(`${out}/${name}.partial.json`, {quick});
  return {
    ...{tf, tfla, quick, values, once: store.once},
    log: (text) => console.error(`[${((performance.now() - began) / 1000).toFixed(0)} s] ${text}`),
    /**
     * Writes the Markdown and the plots, which begin to be a result when `done` is true; prints the Markdown then.
     *
     * @param plots {ending: SVG}
     */
    publish: (title, parts, plots = {}, done = true) => {
      if (quick && !done) return;
      const flags = process.argv
        .slice(2)
        .filter((flag, i, all) => flag !== '--keep' && flag !== '--out' && all[i - 1] !== '--out');
      const command = ['node', `benchmarks/experiments/${name}.mjs`, ...flags].join(' ');
      const pictures = Object.keys(plots).map((ending) => `![${title}](${name}_${ending}.svg)`);
      const text = [
        `# ${title}`,
        ...(quick ? ['Quick: small sizes, to see that it runs. Not a result.'] : []),
        ...(done ? [] : ['**Not finished**: what is missing below has not been measured yet.']),
        `\`${command}\`, ${(store.cpuSeconds() / 60).toFixed(1)} minutes of processor time, backend ${backend}, one thread; ${machineLine(machine())}; load average at the end ${load()}.`,
        ...parts,
        ...pictures,
      ].join('\n\n');
      if (done) console.log(text);
      if (quick) return;
      mkdirSync(out, {recursive: true});
      const file = `${out}/${name}.md`;
      const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
      const notes = before.includes(NOTES) ? before.slice(before.indexOf(NOTES)) : '';
      writeFileSync(file, `${text}\n${notes}`);
      for (const [ending, svg] of Object.entries(plots)) writeFileSync(`${out}/${name}_${ending}.svg`, svg);
      if (done && !keep) store.remove();
    },
  };
}

/** Seconds of processor time so far: what one thread does, whatever else the machine does. */
export function cpuSeconds() {
  const {user, system} = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Measurements in a file, so that a run that was stopped goes on where it was. */
function stored(file, {quick}) {
  const known =
    !quick && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {seconds: 0, values: {}};
  const values = new Map(Object.entries(known.values));
  const seconds = () => known.seconds + cpuSeconds();
  return {
    cpuSeconds: seconds,
    remove: () => rmSync(file, {force: true}),
    /**
     * The value of `make()`, as JSON keeps it, made once for this key.
     *
     * @param key [text or numbers]: all that the value depends on
     */
    once: async (key, make) => {
      const name = key.join(' | ');
      if (!values.has(name)) {
        values.set(name, JSON.parse(JSON.stringify(await make())));
        if (!quick) {
          mkdirSync(dirname(file), {recursive: true});
          writeFileSync(
            `${file}.new`,
            JSON.stringify({seconds: seconds(), values: Object.fromEntries(values)}),
          );
          renameSync(`${file}.new`, file);
        }
      }
      return values.get(name);
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
