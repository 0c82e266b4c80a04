/**
 * Trains the page's two models with the command line, linear and softmax, with the same settings and seed, and puts them
 * into public/models. Some minutes of two cores each:
 *
 *     npm run build && node examples/browser/train_models.mjs
 *
 * `--steps N` changes what it takes; the models in the repository have the default.
 */
import {spawnSync} from 'node:child_process';
import {copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {mobyDick} from '../node/moby_dick.mjs';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const {values} = parseArgs({
  options: {
    steps: {type: 'string', default: '2000'},
  },
});

const folder = mkdtempSync(join(tmpdir(), 'demo-models-'));
try {
  const data = join(folder, 'moby_dick.txt');
  writeFileSync(data, mobyDick());
  for (const attention of ['linear', 'softmax']) {
    const run = join(folder, attention);
    const flags = {
      ...{data, out: run, attention, steps: values.steps},
      ...{layers: 2, 'd-model': 128, heads: 4, length: 256, batch: 4},
      ...{lr: 0.004, every: 400, seed: 1},
    };
    const {status} = spawnSync(
      process.execPath,
      [
        path('../../dist/cli.cjs'),
        'train',
        ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, `${value}`]),
      ],
      {stdio: 'inherit'},
    );
    if (status !== 0) process.exit(status ?? 1);
    const target = path(`public/models/${attention}`);
    mkdirSync(target, {recursive: true});
    for (const name of ['model.json', 'weights.bin', 'tokenizer.json'])
      copyFileSync(join(run, name), join(target, name));
  }
} finally {
  rmSync(folder, {recursive: true, force: true});
}
