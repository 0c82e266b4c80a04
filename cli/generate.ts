/** `generate`: writes text with a trained model, character by character as it comes. */
import {type Flags, parseFlags} from './args';
import {BACKENDS} from './backend';
import type {Command} from './command';

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
  backend: {type: 'string', choices: BACKENDS, default: 'wasm', describe: 'the tfjs backend'},
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
  async run(argv) {
    parseFlags('generate', FLAGS, argv);
    throw new Error('not available in this version');
  },
};
