/** The flags of `train`, and the settings that make a run what it is. */
import type {Flags, Parsed} from './args';
import {BACKENDS, type BackendName} from './backend';

export const DEFAULT_STEPS = 1000;

export const TRAIN_FLAGS = {
  data: {type: 'string', value: 'FILE', required: true, describe: 'the text to learn, UTF-8'},
  out: {type: 'string', value: 'DIR', required: true, describe: 'the folder to write'},
  steps: {type: 'integer', min: 1, describe: 'number of steps (default 1000, or what fits in --minutes)'},
  minutes: {
    type: 'number',
    min: 0,
    exclusiveMin: true,
    describe: 'stop after this time; without --steps, plan the steps for it',
  },
  batch: {type: 'integer', min: 1, default: 8, describe: 'sequences per step'},
  length: {type: 'integer', min: 1, default: 128, describe: 'characters per sequence'},
  'd-model': {type: 'integer', min: 1, default: 128, describe: 'size of the vectors inside the model'},
  layers: {type: 'integer', min: 1, default: 2, describe: 'number of blocks'},
  heads: {type: 'integer', min: 1, default: 4, describe: 'heads of each attention layer; divides --d-model'},
  attention: {
    type: 'string',
    choices: ['linear', 'softmax'],
    default: 'linear',
    describe: 'kind of attention',
  },
  'feature-map': {
    type: 'string',
    value: 'NAME',
    default: 'exp',
    describe: "linear attention's feature map: elu, relu, squaredRelu ...",
  },
  position: {
    type: 'string',
    choices: ['rotary', 'sinusoidal', 'none'],
    default: 'rotary',
    describe: 'how positions are told',
  },
  dropout: {type: 'number', min: 0, max: 0.99, default: 0, describe: 'fraction dropped while training'},
  lr: {type: 'number', min: 0, exclusiveMin: true, default: 0.003, describe: 'largest learning rate'},
  warmup: {
    type: 'integer',
    min: 0,
    describe: 'steps in which the rate rises (default a tenth of the steps, at most 100)',
  },
  'weight-decay': {type: 'number', min: 0, default: 0.01, describe: "AdamW's weight decay"},
  clip: {type: 'number', min: 0, exclusiveMin: true, default: 1, describe: 'largest norm of the gradient'},
  accumulate: {type: 'integer', min: 1, describe: 'batches per step (default --threads)'},
  threads: {
    type: 'integer',
    min: 1,
    max: 64,
    default: 1,
    describe: 'threads that share the batches of a step (wasm); --accumulate is a multiple',
  },
  validation: {
    type: 'number',
    min: 0,
    max: 0.5,
    default: 0.05,
    describe: 'fraction of the text, at its end, kept for validation; at most 16384 characters',
  },
  every: {
    type: 'integer',
    min: 1,
    default: 100,
    describe: 'steps between validations, each with a checkpoint',
  },
  seed: {type: 'integer', min: 0, default: 1, describe: 'of the weights, the batches and dropout'},
  backend: {type: 'string', choices: BACKENDS, describe: 'the tfjs backend; default: the fastest that works'},
  from: {
    type: 'string',
    value: 'DIR',
    describe: 'start from the weights of this trained model, of the same size, in place of random ones',
  },
  resume: {type: 'boolean', describe: 'continue the run in --out from its checkpoint'},
  overwrite: {type: 'boolean', describe: 'replace the run in --out'},
} as const satisfies Flags;

/** What is kept in run.json. 0 steps, backend '': not decided yet. warmup -1: the default for the steps. */
export function settingsOf(values: Parsed<typeof TRAIN_FLAGS>['values']) {
  const {
    data: _data,
    out: _out,
    from: _from,
    minutes: _minutes,
    resume: _resume,
    overwrite: _overwrite,
    ...settings
  } = values;
  return {
    ...settings,
    backend: (settings.backend ?? '') as BackendName | '',
    steps: settings.steps ?? 0,
    warmup: settings.warmup ?? -1,
    accumulate: settings.accumulate ?? settings.threads,
  };
}

export type TrainSettings = ReturnType<typeof settingsOf>;
