/** `bench`: the repository's benchmarks, which the installed package does not hold. */
import {spawn} from 'node:child_process';
import {existsSync} from 'node:fs';
import {join} from 'node:path';
import type {Flags} from './args';
import {parseFlags} from './args';
import type {Command} from './command';
import {EXIT, Failure} from './errors';

/** From dist/cli.cjs. */
const SCRIPT = join(__dirname, '..', 'benchmarks', 'bench.mjs');

const FLAGS = {
  only: {
    type: 'string',
    value: 'NAMES',
    describe: 'these cases alone, with commas between; an unknown name lists them',
  },
  quick: {type: 'boolean', describe: 'small sizes and few timings, for a look; nothing is kept'},
  node: {type: 'string', value: 'PATH', describe: 'measure with another Node binary'},
  out: {type: 'string', value: 'DIR', describe: 'where the results go; default benchmarks/results'},
} as const satisfies Flags;

export const benchCommand: Command = {
  name: 'bench',
  summary:
    'measures the kernels and training against stock tfjs, onnxruntime and jax-js (in a clone of the repository)',
  flags: FLAGS,
  examples: [
    'tfjs-linear-attention bench --quick',
    'tfjs-linear-attention bench --only forward,gemm',
    'tfjs-linear-attention bench --node /opt/node-22/bin/node --out results-22',
  ],
  notes: `Results are compared before anything is timed. The peers (about 440 MB) are installed into benchmarks/peers when they are
needed. The whole table takes about a quarter of an hour on a quiet machine.`,
  run,
};

async function run(argv: readonly string[]): Promise<number> {
  const {values} = parseFlags('bench', FLAGS, argv);
  if (!existsSync(SCRIPT)) {
    throw new Failure(
      'bench: the benchmarks are part of the repository and not of the installed package. In a clone: npm ci, then npm run bench.',
    );
  }
  const passed = (['only', 'node', 'out'] as const).flatMap((name) => {
    const value = values[name];
    return value === undefined ? [] : [`--${name}`, value];
  });
  const args = [SCRIPT, ...passed, ...(values.quick ? ['--quick'] : [])];
  // Ctrl-C reaches the benchmarks too, being of the same terminal; the command ends when they have ended.
  const ignore = () => undefined;
  process.on('SIGINT', ignore);
  try {
    return await new Promise<number>((resolve, reject) => {
      const child = spawn(process.execPath, args, {stdio: 'inherit'});
      child.on('error', reject);
      child.on('close', (code, signal) =>
        resolve(signal === null ? (code ?? EXIT.failure) : EXIT.interrupted),
      );
    });
  } finally {
    process.off('SIGINT', ignore);
  }
}
