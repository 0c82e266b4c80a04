/** `export`: a trained model in fewer bytes, for a page. */
import {existsSync, readdirSync, readFileSync, statSync} from 'node:fs';
import {join, resolve} from 'node:path';
import {saveModel} from '../training';
import {writeFilesAtomically} from '../training/atomic_file';
import {QUANTIZATIONS} from '../training/quantize';
import {type Flags, parseFlags} from './args';
import {useBackend} from './backend';
import type {Command} from './command';
import {EXIT, Failure, UsageError} from './errors';
import {checkModelFolder, load} from './model_folder';
import {FILES} from './output_folder';
import {readTokenizer} from './run_file';

const FLAGS = {
  model: {type: 'string', value: 'DIR', required: true, describe: 'the folder that train wrote'},
  out: {type: 'string', value: 'DIR', required: true, describe: 'a new or empty folder'},
  quantize: {
    type: 'string',
    choices: QUANTIZATIONS,
    describe: 'store the matrices in 2 bytes a number (float16, uint16) or 1 (uint8); default: exact',
  },
  overwrite: {type: 'boolean', describe: 'replace what an earlier export left in --out'},
} as const satisfies Flags;

export const exportCommand: Command = {
  name: 'export',
  summary: 'writes a trained model for use elsewhere, in fewer bytes if you like',
  flags: FLAGS,
  examples: [
    'tfjs-linear-attention export --model runs/book --quantize float16 --out public/book',
    'tfjs-linear-attention export --model runs/book --quantize uint8 --out public/book --overwrite',
  ],
  notes: `The folder gets ${FILES.model}, ${FILES.weights} and ${FILES.tokenizer}: what a page, generate and tf.loadLayersModel need.
float16 changes nothing that can be measured; uint8 costs a little (benchmarks/results/quantization.md in the repository).`,
  run,
};

async function run(argv: readonly string[]): Promise<number> {
  const {values} = parseFlags('export', FLAGS, argv);
  const {model: from, out, quantize, overwrite} = values;
  checkModelFolder(from);
  readTokenizer(from);
  checkOut(from, out, overwrite);
  await useBackend('cpu');
  const model = await load(from);
  try {
    writeFilesAtomically('export', [
      {path: join(out, FILES.tokenizer), bytes: readFileSync(join(from, FILES.tokenizer))},
    ]);
    await saveModel(model, out, quantize === undefined ? {} : {quantize});
  } catch (error) {
    throw new Failure((error as Error).message);
  }
  // A model that tfjs wrote has its weights under other names.
  const [before, after] = [from, out].map(
    (folder) => statSync(join(folder, FILES.weights), {throwIfNoEntry: false})?.size,
  );
  const share =
    before && after ? `, ${((100 * after) / before).toFixed(0)}% of the ${before} of ${from}` : '';
  console.error(`${out}: ${after} bytes of weights${share}.`);
  return EXIT.ok;
}

function checkOut(from: string, out: string, overwrite: boolean): void {
  if (resolve(from) === resolve(out)) {
    throw new UsageError(`export: --out ${out} is the folder of --model; expected another.`);
  }
  if (existsSync(out) && !statSync(out).isDirectory()) {
    throw new Failure(`--out ${out}: it is a file; expected a folder.`);
  }
  const files = existsSync(out) ? readdirSync(out) : [];
  // A run's checkpoint and log are hours of work: no export replaces them.
  const run = files.find((name) => name === FILES.run || name === FILES.checkpoint);
  if (run !== undefined) {
    throw new UsageError(`export: --out ${out} holds a run (${run}); expected another folder.`);
  }
  if (files.length > 0 && !overwrite) {
    throw new UsageError(
      `export: --out ${out} is not empty (${files.slice(0, 3).join(', ')}). Give --overwrite, or another folder.`,
    );
  }
}
