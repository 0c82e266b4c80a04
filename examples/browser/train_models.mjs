/**
 * Trains the page's two models with the command line, linear and softmax, of the same size, and puts them into
 * public/models. Half an hour of two cores or so:
 *
 *     npm run build && node examples/browser/train_models.mjs
 *
 * First the language on windows of 256 characters, then windows of 512. The linear model learns with exp features, which
 * learn fastest, and changes then to squared relu's, for which it gets two stages more: exp's grow to
 * their limit at positions far beyond the windows, where rotary turns large negative numbers into large positive ones, and
 * then a few of them drown the rest. (Trained in windows of 512 with exp to the end it needs as many bits, 3.01.)
 */
import {spawnSync} from 'node:child_process';
import {copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {mobyDick} from '../node/moby_dick.mjs';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const SIZE = {layers: 2, 'd-model': 128, heads: 4, seed: 1};
const FIRST = {length: 256, batch: 4, steps: 2000, every: 400, lr: 0.004};
const SECOND = {length: 512, batch: 2, steps: 300, every: 100, lr: 0.002};
const STAGES = {
  linear: [
    {...FIRST, 'feature-map': 'exp'},
    {...SECOND, 'feature-map': 'squaredRelu'},
    {...SECOND, 'feature-map': 'squaredRelu', steps: 550, lr: 0.005, seed: 2},
    {...SECOND, 'feature-map': 'squaredRelu', steps: 600, lr: 0.004, seed: 3},
  ],
  softmax: [FIRST, SECOND],
};
const FILES = ['model.json', 'weights.bin', 'tokenizer.json'];

function train(flags) {
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  const {status} = spawnSync(process.execPath, [path('../../dist/cli.cjs'), 'train', ...args], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}

const folder = mkdtempSync(join(tmpdir(), 'demo-models-'));
try {
  const data = join(folder, 'moby_dick.txt');
  writeFileSync(data, mobyDick());
  for (const [attention, stages] of Object.entries(STAGES)) {
    let from = {};
    for (const [i, stage] of stages.entries()) {
      const out = join(folder, `${attention}-${i}`);
      train({data, out, attention, ...SIZE, ...stage, ...from});
      from = {from: out};
    }
    const target = path(`public/models/${attention}`);
    mkdirSync(target, {recursive: true});
    for (const name of FILES) copyFileSync(join(from.from, name), join(target, name));
  }
} finally {
  rmSync(folder, {recursive: true, force: true});
}
