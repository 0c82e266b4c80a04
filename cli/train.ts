/** `train`: a character-level language model from a text file. */
import {join} from 'node:path';
import {type CharacterTokenizer, characterTokenizer, transformer} from '../models';
import * as patches from '../src/patches';
import {progressPrinter, saveModel, type TrainingProgress, type TrainingResult, train} from '../training';
import {parseFlags} from './args';
import {backendInUse, fastestTraining, useBackend} from './backend';
import type {Command} from './command';
import {EXIT, Failure, UsageError} from './errors';
import {type Interrupt, onInterrupt} from './interrupt';
import {checkModelFolder} from './model_folder';
import {checkFolder, FILES, prepareFolder} from './output_folder';
import {planSteps} from './plan_steps';
import {reportEnd} from './report_end';
import {checkUnchanged, readSettings, readTokenizer, writeRunFiles} from './run_file';
import {startFrom} from './start_from';
import {readTextFile} from './text_file';
import {DEFAULT_STEPS, settingsOf, TRAIN_FLAGS, type TrainSettings} from './train_flags';
import {trainingLog} from './training_log';

/** Ctrl-C and the end of --minutes leave time for saving. */
const NOTICE = 'Stopping after this step and saving. Ctrl-C again ends at once, without saving.';

export const trainCommand: Command = {
  name: 'train',
  summary: 'trains a character-level language model on a text file',
  flags: TRAIN_FLAGS,
  examples: [
    'tfjs-linear-attention train --data book.txt --out runs/book --minutes 10',
    'tfjs-linear-attention train --data book.txt --out runs/large --d-model 256 --layers 4 --steps 5000',
    'tfjs-linear-attention train --data book.txt --out runs/book --resume',
    'tfjs-linear-attention train --data book.txt --out runs/softmax --attention softmax --seed 1',
    'tfjs-linear-attention train --data book.txt --out runs/long --from runs/book --length 1024 --batch 1 --lr 0.001',
  ],
  notes: `The folder gets ${Object.values(FILES).join(', ')}; each is written whole or not at all.
Ctrl-C stops after the current step and saves; --resume with the same text continues exactly where the last checkpoint
was, with the run's own settings and backend. --steps, --every, --threads and --backend may change then.`,
  run,
};

async function run(argv: readonly string[]): Promise<number> {
  const {values, given} = parseFlags('train', TRAIN_FLAGS, argv);
  const {data, out, from, resume, overwrite, minutes, backend} = values;
  if (resume && overwrite) throw new UsageError('train: give --resume or --overwrite, not both.');
  if (resume && from !== undefined) throw new UsageError('train: give --resume or --from, not both.');
  if (values['d-model'] % values.heads !== 0) {
    throw new UsageError(
      `train: expected --d-model to be a multiple of --heads (${values.heads}); got ${values['d-model']}.`,
    );
  }
  if (values.threads > 1 && (backend ?? 'wasm') !== 'wasm') {
    throw new UsageError(`train: --threads needs --backend wasm; got ${backend}.`);
  }
  if ((values.accumulate ?? values.threads) % values.threads !== 0) {
    throw new UsageError(
      `train: expected --accumulate to be a multiple of --threads (${values.threads}); got ${values.accumulate}.`,
    );
  }
  const text = readTextFile('--data', data);
  if (from !== undefined) checkModelFolder(from, '--from');
  checkFolder(out, {resume, overwrite});
  const settings = resume ? resumed(out, settingsOf(values), given) : settingsOf(values);
  const tokenizer = resume
    ? readTokenizer(out)
    : from !== undefined
      ? readTokenizer(from)
      : characterTokenizer(text);
  const {tokens, held} = split(encode(tokenizer, text, data), settings, data);
  // A resumed run goes on where it ran: other backends give other bits.
  const asked = values.threads > 1 ? 'wasm' : settings.backend || undefined;
  const which = await useBackend(asked, fastestTraining(settings['d-model']));
  settings.backend = backendInUse();
  patches.wasmTraining();
  patches.wasmMatMul();
  const started = performance.now();
  const makeModel = () => makeTransformer(settings, tokenizer.vocabSize);
  const model = makeModel();
  if (from !== undefined) await startFrom(model, from);
  prepareFolder(out, overwrite);

  const interrupt = onInterrupt(NOTICE);
  if (settings.steps === 0) {
    const {length, batch: batchSize, accumulate, threads: workers} = settings;
    const options = {length, batchSize, accumulate, workers, signal: interrupt.signal};
    settings.steps =
      minutes === undefined ? DEFAULT_STEPS : await planSteps(makeModel, tokens, options, minutes * 60);
  }
  if (interrupt.interrupted) {
    console.error('Stopped before the first step; nothing was written.');
    return EXIT.interrupted;
  }
  writeRunFiles(out, {...settings}, tokenizer.toJSON());
  console.error(
    `${settings.attention} attention, ${model.countParams()} parameters, ${tokenizer.vocabSize} characters, ` +
      `${tokens.length} to train on, ${held?.length ?? 0} to validate on; ${which}.`,
  );
  const left = minutes === undefined ? undefined : minutes * 60_000 - (performance.now() - started);
  return runTraining({model, text, tokens, held, settings, out, resume, interrupt, left});
}

function encode(tokenizer: CharacterTokenizer, text: string, data: string): Tokens {
  try {
    return tokenizer.encode(text);
  } catch (error) {
    throw new Failure(`--data ${data}: ${(error as Error).message} Was the run started with another text?`);
  }
}

type Tokens = Int32Array;

/** More would cost time at every measure and tell little more. */
const MAX_VALIDATION = 16384;

/** The end of the text is kept for validation: the fraction asked for, at least one window, at most MAX_VALIDATION. */
function split(
  ids: Tokens,
  {validation, length}: TrainSettings,
  data: string,
): {tokens: Tokens; held: Tokens | null} {
  const wanted = Math.min(MAX_VALIDATION, Math.round(ids.length * validation));
  const size = validation === 0 ? 0 : Math.max(length + 1, wanted);
  const rest = ids.length - size;
  if (rest < length + 1) {
    throw new Failure(
      `--data ${data}: it has ${ids.length} characters; expected at least ${size + length + 1} for --length ${length} ` +
        `(${length + 1} to train on${size === 0 ? '' : `, ${size} to validate on`}). Give more text, or a smaller --length.`,
    );
  }
  return {tokens: ids.slice(0, rest), held: size === 0 ? null : ids.slice(rest)};
}

/** What may change when a run is continued: it decides how long and how fast, not what is computed (but for rounding). */
const MAY_CHANGE = ['steps', 'every', 'threads', 'backend'] as const;

/** The settings of the run in the folder; the flags that were given must agree with them. */
function resumed(out: string, settings: TrainSettings, given: ReadonlySet<string>): TrainSettings {
  const stored = readSettings(out, settings);
  const names = Object.keys(stored).filter((name) => given.has(name));
  const fixed = names.filter((name) => !MAY_CHANGE.some((free) => free === name));
  checkUnchanged({...stored}, {...settings}, fixed);
  const changed = MAY_CHANGE.filter((name) => given.has(name)).map((name) => [name, settings[name]]);
  return {...stored, ...Object.fromEntries(changed)};
}

function makeTransformer(settings: TrainSettings, vocabSize: number) {
  try {
    return transformer({
      vocabSize,
      dModel: settings['d-model'],
      numLayers: settings.layers,
      numHeads: settings.heads,
      attention: settings.attention,
      position: settings.position,
      ...(settings.attention === 'linear' ? {featureMap: settings['feature-map']} : {}),
      dropout: settings.dropout,
      seed: settings.seed,
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

interface Work {
  model: ReturnType<typeof transformer>;
  text: string;
  tokens: Tokens;
  held: Tokens | null;
  settings: TrainSettings;
  out: string;
  resume: boolean;
  interrupt: Interrupt;
  /** Milliseconds; undefined: no limit. */
  left: number | undefined;
}

async function runTraining(work: Work): Promise<number> {
  const {model, text, tokens, held, settings, out, resume, interrupt, left} = work;
  const printer = progressPrinter(process.stderr);
  const log = trainingLog(join(out, FILES.log), (text) => console.error(text));
  const timer = left === undefined ? undefined : setTimeout(() => interrupt.stop(), Math.max(0, left));
  let step = 0;
  let result: TrainingResult | null = null;
  let failure: Error | null = null;
  try {
    result = await train(model, held === null ? tokens : {train: tokens, validation: held}, {
      steps: settings.steps,
      batchSize: settings.batch,
      length: settings.length,
      learningRate: settings.lr,
      ...(settings.warmup < 0 ? {} : {warmup: settings.warmup}),
      weightDecay: settings['weight-decay'],
      clipNorm: settings.clip,
      accumulate: settings.accumulate,
      workers: settings.threads,
      every: settings.every,
      seed: settings.seed,
      checkpoint: join(out, FILES.checkpoint),
      resume,
      signal: interrupt.signal,
      onProgress(progress: TrainingProgress) {
        step = progress.step;
        printer.update(progress);
        log.write(progress);
      },
    });
  } catch (error) {
    failure = error as Error;
  } finally {
    clearTimeout(timer);
    printer.end();
  }
  // The weights of the last good step are worth keeping whatever went wrong; the model is smaller than a checkpoint.
  const saved = step > 0 || result !== null ? await trySave(model, out) : null;
  interrupt.release();
  if (failure !== null || saved instanceof Error) {
    const kept =
      saved === null
        ? ''
        : saved instanceof Error
          ? `\n${saved.message}`
          : `\nThe model after step ${step} is saved in ${out}.`;
    throw new Failure(`${failure?.message ?? ''}${kept}`.trim());
  }
  return reportEnd(result!, out, {interrupted: interrupt.interrupted, text});
}

async function trySave(model: Work['model'], out: string): Promise<true | Error> {
  try {
    await saveModel(model, out);
    return true;
  } catch (error) {
    return error as Error;
  }
}
