/** The arguments that linear and softmax attention layers share: types, checks, defaults, configuration. */
import type * as tf from '@tensorflow/tfjs-core';
import {check, checkBoolean, checkInteger, checkNumber, checkOneOf, fail, show} from '../src/errors';
import {
  type Constraint,
  type Identifier,
  type Initializer,
  type Regularizer,
  resolve,
  serialize,
} from './identifiers';
import type {LayerArgs} from './layer_args';

/** Arguments of both attention layers. Null means "not given", as in a saved configuration. */
export interface AttentionArgs extends LayerArgs {
  /** H: number of heads. */
  numHeads: number;
  /** r: size of each head's queries and keys, before a feature map. */
  keyDim: number;
  /** d: size of each head's values. Default keyDim. */
  valueDim?: number | null;
  /** Size of the output's last dimension. Default: the query's last dimension. */
  outputDim?: number | null;
  /** Each token sees itself and earlier ones only. Default false. */
  causal?: boolean;
  /** Biases on all four projections. Default true. */
  useBias?: boolean;
  /** Fraction dropped while training, in [0, 1). Default 0. */
  dropout?: number;
  /** Rotary position embedding (RoFormer, https://arxiv.org/abs/2104.09864). Default false. */
  rotary?: false | 'input' | 'numerator';
  /** Which two features turn together: i and i + r/2, or 2i and 2i + 1. Default 'half'. */
  rotaryPairing?: 'half' | 'interleaved';
  /** Base of the rotation's wavelengths. Default 10000. */
  rotaryBase?: number;
  /** Default 'glorotUniform', over each kernel as the matrix that it is ([D, H*r], [H*d, O]). */
  kernelInitializer?: Identifier<Initializer>;
  /** Default 'zeros'. */
  biasInitializer?: Identifier<Initializer>;
  kernelRegularizer?: Identifier<Regularizer> | null;
  biasRegularizer?: Identifier<Regularizer> | null;
  /** Applied to each kernel as a matrix: maxNorm bounds the incoming weights of one unit. */
  kernelConstraint?: Identifier<Constraint> | null;
  biasConstraint?: Identifier<Constraint> | null;
  /** Seeds the default kernels and dropout. Default: kernels as tfjs does, dropout by the layer's name. */
  seed?: number | null;
}

/** The same, checked and complete. `outputDim` stays null until the query's size is known. */
export interface AttentionOptions {
  numHeads: number;
  keyDim: number;
  valueDim: number;
  outputDim: number | null;
  causal: boolean;
  useBias: boolean;
  dropout: number;
  rotary: false | 'input' | 'numerator';
  rotaryPairing: 'half' | 'interleaved';
  rotaryBase: number;
  kernelInitializer: Initializer;
  biasInitializer: Initializer;
  kernelRegularizer: Regularizer | null;
  biasRegularizer: Regularizer | null;
  kernelConstraint: Constraint | null;
  biasConstraint: Constraint | null;
  seed: number | null;
}

const LAYER_ARGS = [
  'inputShape',
  'batchInputShape',
  'batchSize',
  'dtype',
  'name',
  'trainable',
  'weights',
  'inputDType',
] as const satisfies readonly (keyof LayerArgs)[];

const ATTENTION_ARGS = [
  'numHeads',
  'keyDim',
  'valueDim',
  'outputDim',
  'causal',
  'useBias',
  'dropout',
  'rotary',
  'rotaryPairing',
  'rotaryBase',
  'kernelInitializer',
  'biasInitializer',
  'kernelRegularizer',
  'biasRegularizer',
  'kernelConstraint',
  'biasConstraint',
  'seed',
] as const satisfies readonly (keyof AttentionOptions)[];

/** What Keras's MultiHeadAttention takes and these layers do not, with what to do instead. */
const HINTS: {[key: string]: string} = {
  attention_mask:
    'masks are per key, [B,Nk]: pass {mask} with one input, or [query, value, key, mask]; for a causal mask set causal: true in the arguments',
  use_causal_mask: "set causal: true in the layer's arguments",
  return_attention_scores:
    'attention weights are never formed; impliedAttention(q, k) computes them for looking at',
};
for (const key of Object.keys(HINTS)) {
  HINTS[key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())] = HINTS[key];
}

/** Refuses Keras's call arguments that would otherwise be ignored in silence. */
export function checkCallArgs(fn: string, kwargs: object | undefined): void {
  for (const key of Object.keys(kwargs ?? {})) {
    check(!Object.hasOwn(HINTS, key), fn, () => `'${key}' is not supported: ${HINTS[key]}.`);
  }
}

function checkNames(fn: string, args: unknown, extra: readonly string[]): asserts args is object {
  check(
    args !== null && typeof args === 'object' && !Array.isArray(args),
    fn,
    () => `expected an object of arguments; got ${show(args)}.`,
  );
  checkCallArgs(fn, args);
  const allowed: string[] = [...ATTENTION_ARGS, ...extra, ...LAYER_ARGS];
  for (const key of Object.keys(args)) {
    check(
      allowed.includes(key),
      fn,
      () => `unknown argument '${key}'; expected ${allowed.map((k) => `'${k}'`).join(', ')}.`,
    );
  }
}

/** Throws unless an argument of one of the shared names is as it should be; fills in defaults. */
export function parseArgs(
  fn: string,
  args: AttentionArgs,
  extra: readonly string[],
  rotaryForms: readonly ('input' | 'numerator')[],
): AttentionOptions {
  checkNames(fn, args, extra);
  const {numHeads, keyDim} = args;
  checkInteger(fn, 'numHeads', numHeads);
  checkInteger(fn, 'keyDim', keyDim);
  const valueDim = args.valueDim ?? keyDim;
  checkInteger(fn, 'valueDim', valueDim);
  const outputDim = args.outputDim ?? null;
  if (outputDim !== null) checkInteger(fn, 'outputDim', outputDim);
  const causal = args.causal ?? false;
  checkBoolean(fn, 'causal', causal);
  const useBias = args.useBias ?? true;
  checkBoolean(fn, 'useBias', useBias);
  const dropout = args.dropout ?? 0;
  check(
    typeof dropout === 'number' && dropout >= 0 && dropout < 1,
    fn,
    () => `expected dropout to be a number in [0, 1); got ${show(dropout)}.`,
  );
  const rotary = args.rotary ?? false;
  if (rotary !== false && !(rotaryForms as readonly unknown[]).includes(rotary)) {
    const forms = rotaryForms.map((form) => `'${form}'`).join(', ');
    fail(fn, `expected rotary to be one of false, ${forms}; got ${show(rotary)}.`);
  }
  const rotaryPairing = args.rotaryPairing ?? 'half';
  checkOneOf(fn, 'rotaryPairing', rotaryPairing, ['half', 'interleaved']);
  const rotaryBase = args.rotaryBase ?? 10000;
  checkNumber(fn, 'rotaryBase', rotaryBase, {min: 0, exclusive: true});
  check(
    rotary !== 'input' || keyDim % 2 === 0,
    fn,
    () => `expected keyDim to be even with rotary 'input'; got ${keyDim}.`,
  );
  const seed = args.seed ?? null;
  if (seed !== null) checkInteger(fn, 'seed', seed, Number.MIN_SAFE_INTEGER);
  return {
    numHeads,
    keyDim,
    valueDim,
    outputDim,
    causal,
    useBias,
    dropout,
    rotary,
    rotaryPairing,
    rotaryBase,
    kernelInitializer: resolve<Initializer>(
      fn,
      'kernelInitializer',
      'initializer',
      args.kernelInitializer ?? {className: 'GlorotUniform', config: seed === null ? {} : {seed}},
    )!,
    biasInitializer: resolve<Initializer>(
      fn,
      'biasInitializer',
      'initializer',
      args.biasInitializer ?? 'zeros',
    )!,
    kernelRegularizer: resolve<Regularizer>(fn, 'kernelRegularizer', 'regularizer', args.kernelRegularizer),
    biasRegularizer: resolve<Regularizer>(fn, 'biasRegularizer', 'regularizer', args.biasRegularizer),
    kernelConstraint: resolve<Constraint>(fn, 'kernelConstraint', 'constraint', args.kernelConstraint),
    biasConstraint: resolve<Constraint>(fn, 'biasConstraint', 'constraint', args.biasConstraint),
    seed,
  };
}

/** One JSON-safe key per argument, as `parseArgs` reads it back. */
export function configOf(options: AttentionOptions): tf.serialization.ConfigDict {
  return {
    numHeads: options.numHeads,
    keyDim: options.keyDim,
    valueDim: options.valueDim,
    outputDim: options.outputDim,
    causal: options.causal,
    useBias: options.useBias,
    dropout: options.dropout,
    rotary: options.rotary,
    rotaryPairing: options.rotaryPairing,
    rotaryBase: options.rotaryBase,
    kernelInitializer: serialize(options.kernelInitializer),
    biasInitializer: serialize(options.biasInitializer),
    kernelRegularizer: serialize(options.kernelRegularizer),
    biasRegularizer: serialize(options.biasRegularizer),
    kernelConstraint: serialize(options.kernelConstraint),
    biasConstraint: serialize(options.biasConstraint),
    seed: options.seed,
  };
}

/** The known arguments of a configuration: loaders add keys of their own (`customObjects`). */
export function argsFromConfig(config: object, extra: readonly string[]): AttentionArgs {
  const known: string[] = [...ATTENTION_ARGS, ...extra, ...LAYER_ARGS];
  const entries = Object.entries(config).filter(([key, value]) => known.includes(key) && value !== null);
  return Object.fromEntries(entries) as AttentionArgs;
}
