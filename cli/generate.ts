/** `generate`: writes text with a trained model, character by character as it comes. */
import {generate, stream} from '../generation';
import type {CharacterTokenizer} from '../models';
import * as patches from '../src/patches';
import {type Flags, parseFlags} from './args';
import {BACKENDS, FASTEST_WRITING, useBackend} from './backend';
import type {Command} from './command';
import {EXIT, Failure, UsageError} from './errors';
import {onInterrupt} from './interrupt';
import {checkModelFolder, load} from './model_folder';
import {readTokenizer, trainedLength} from './run_file';

const FLAGS = {
  model: {type: 'string', value: 'DIR', required: true, describe: 'the folder that train wrote'},
  prompt: {type: 'string', required: true, describe: 'the text to continue'},
  'max-tokens': {type: 'integer', min: 1, default: 400, describe: 'characters to write'},
  temperature: {type: 'number', min: 0, default: 0.8, describe: '0 takes the likeliest character always'},
  'top-k': {type: 'integer', min: 1, describe: 'only the k likeliest characters'},
  'top-p': {
    type: 'number',
    min: 0,
    exclusiveMin: true,
    max: 1,
    describe: 'only the likeliest characters that reach this probability together, after --top-k',
  },
  seed: {type: 'integer', min: 0, default: 1, describe: 'the same seed writes the same text'},
  backend: {type: 'string', choices: BACKENDS, describe: 'the tfjs backend; default: the fastest that works'},
} as const satisfies Flags;

export const generateCommand: Command = {
  name: 'generate',
  summary: 'continues a prompt with a trained model',
  flags: FLAGS,
  examples: [
    'tfjs-linear-attention generate --model runs/book --prompt "It was "',
    'tfjs-linear-attention generate --model runs/book --prompt "The whale" --temperature 0.5 --max-tokens 1000',
    'tfjs-linear-attention generate --model runs/book --prompt "Call me" --top-k 20 --top-p 0.9 --seed 7 > text.txt',
  ],
  notes: 'The text goes to the standard output, everything else to the standard error.',
  run,
};

async function run(argv: readonly string[]): Promise<number> {
  const {values} = parseFlags('generate', FLAGS, argv);
  const {model: folder, prompt, backend} = values;
  if (prompt === '') throw new UsageError('generate: --prompt is empty; expected at least one character.');
  checkModelFolder(folder);
  const tokenizer = readTokenizer(folder);
  checkCharacters(prompt, tokenizer);
  const which = await useBackend(backend, FASTEST_WRITING);
  if (backend === undefined) console.error(`${which}.`);
  patches.wasmMatMul();
  const model = await load(folder);
  const interrupt = onInterrupt('Stopping.');
  let text = '';
  let made = 0;
  let first = 0;
  process.stdout.write(prompt);
  const started = performance.now();
  try {
    const pieces = generate(model, prompt, {
      tokenizer,
      maxNewTokens: values['max-tokens'],
      temperature: values.temperature,
      ...(values['top-k'] === undefined ? {} : {topK: values['top-k']}),
      ...(values['top-p'] === undefined ? {} : {topP: values['top-p']}),
      seed: values.seed,
      signal: interrupt.signal,
    });
    for await (const piece of pieces) {
      // The first token's time is mostly the reading of the prompt.
      if (made === 0) first = performance.now();
      process.stdout.write(piece);
      text += piece;
      made += 1;
    }
  } catch (error) {
    throw new Failure((error as Error).message);
  } finally {
    process.stdout.write('\n');
    interrupt.release();
  }
  const now = performance.now();
  const rate = made > 1 ? `, then ${Math.round(((made - 1) * 1000) / (now - first))} tokens/s` : '';
  const wait = made > 0 ? `; the first after ${Math.round(first - started)} ms${rate}` : '';
  console.error(`${made} tokens${wait}; ${describeState(model, prompt.length + text.length)}.`);
  const length = trainedLength(folder);
  if (length !== null && prompt.length + text.length > length) {
    console.error(
      `The model was trained on windows of ${length} characters: text further than that from its start ` +
        'tends to be worse. A larger --length in training reaches further.',
    );
  }
  return interrupt.interrupted ? EXIT.interrupted : EXIT.ok;
}

function checkCharacters(prompt: string, tokenizer: CharacterTokenizer): void {
  const known = new Set<string>(tokenizer.toJSON().characters);
  const unknown = [...new Set(prompt)].filter((character) => !known.has(character));
  if (unknown.length > 0) {
    throw new Failure(
      `--prompt: ${unknown.map((character) => JSON.stringify(character)).join(', ')} did not occur in the text that the ` +
        'model was trained on; it can only read and write characters that did.',
    );
  }
}

/** Bytes that the model carries from token to token: constant for linear attention, growing for softmax. */
function describeState(model: Awaited<ReturnType<typeof load>>, tokens: number): string {
  const probe = stream(model);
  try {
    const [one, two] = [0, 0].map((id) => {
      probe.prefill([id]).dispose();
      return probe.stateBytes;
    }) as [number, number];
    return one === two
      ? `a state of ${one} bytes, whatever the length`
      : `a cache of ${one + (two - one) * (tokens - 2)} bytes, ${two - one} more with every token`;
  } finally {
    probe.dispose();
  }
}
