/** The options of `models.transformer`: types, defaults, checks. */

import {POOLINGS, type Pooling} from '../layers/sequence_pooling';
import type {FeatureMap} from '../ops';
import {resolveFeatureMap} from '../ops/feature_maps';
import {check, checkBoolean, checkInteger, checkNumber, checkOneOf, checkOptions, show} from '../src/errors';

/** Of a block. */
export type AttentionKind = 'linear' | 'softmax';
/** How positions are told. */
export type PositionKind = 'rotary' | 'learned' | 'sinusoidal' | 'none';
/** Between the two dense layers of a block. */
export type FeedForwardActivation = 'gelu' | 'geluTanh' | 'relu';
/** What stands after the last block. */
export type Head = 'lm' | 'classifier' | 'none';

/** Options of `transformer`. */
export interface TransformerOptions {
  /** V: the model's input is ids [B,T], int32, below V. Either this or inputDim. */
  vocabSize?: number;
  /** The model's input is vectors [B,T,inputDim], projected to dModel. */
  inputDim?: number;
  /** D: size of each position's vector inside the model; a multiple of numHeads. */
  dModel: number;
  /** Number of blocks. */
  numLayers: number;
  /** Heads of each attention layer, of size dModel / numHeads. */
  numHeads: number;
  /** Size of the feed-forward layers' inner vectors. Default 4 dModel. */
  ffnDim?: number;
  /** Of the feed-forward layers. 'gelu' (exact, by the error function) is the default. */
  activation?: FeedForwardActivation;
  /** For all blocks, or an array with one for each. Default 'linear'. */
  attention?: AttentionKind | readonly AttentionKind[];
  /** Each position sees itself and earlier ones only. Default true. */
  causal?: boolean;
  /** Of the linear attention layers. Default 'elu'. */
  featureMap?: string | FeatureMap;
  /** Default 'rotary', which turns queries and keys (the 'input' form). */
  position?: PositionKind;
  /** Number of positions; needed by position 'learned' and used by it only. */
  maxLength?: number;
  /** Fraction dropped, while training, of embeddings, attention and feed-forward outputs; in [0, 1). Default 0. */
  dropout?: number;
  /** Default 1e-5. */
  layerNormEpsilon?: number;
  /** Head 'lm' uses the embedding table and has no weights of its own. Default true. */
  tieEmbeddings?: boolean;
  /** Id 0 is padding, which no position attends to and no pooling counts. Needs vocabSize. Default false. */
  maskZero?: boolean;
  /**
   * 'lm': logits [B,T,V]. 'classifier': logits [B,numClasses]. 'none': the last block's output, normalised, [B,T,D].
   * Default: 'classifier' when numClasses is given, else 'lm' with vocabSize, else 'none'.
   */
  head?: Head;
  /** Needed by head 'classifier'. */
  numClasses?: number;
  /** Of head 'classifier', over the positions that are not padding. Default 'mean'. */
  pooling?: Pooling;
  /** The same seed gives the same initial weights. Default 0. */
  seed?: number;
}

export type ResolvedOptions = Required<
  Omit<TransformerOptions, 'vocabSize' | 'inputDim' | 'maxLength' | 'numClasses' | 'attention' | 'featureMap'>
> &
  Pick<TransformerOptions, 'vocabSize' | 'inputDim' | 'maxLength' | 'numClasses' | 'featureMap'> & {
    attention: readonly AttentionKind[];
  };

const NAMES = [
  'vocabSize',
  'inputDim',
  'dModel',
  'numLayers',
  'numHeads',
  'ffnDim',
  'activation',
  'attention',
  'causal',
  'featureMap',
  'position',
  'maxLength',
  'dropout',
  'layerNormEpsilon',
  'tieEmbeddings',
  'maskZero',
  'head',
  'numClasses',
  'pooling',
  'seed',
] as const satisfies readonly (keyof TransformerOptions)[];

/** Checks every option and fills in the defaults. */
export function resolveOptions(fn: string, options: TransformerOptions): ResolvedOptions {
  checkOptions(fn, options ?? null, NAMES);
  const {vocabSize, inputDim, dModel, numLayers, numHeads, maxLength, numClasses, featureMap} = options;
  check(
    (vocabSize === undefined) !== (inputDim === undefined),
    fn,
    () =>
      `expected either vocabSize (ids) or inputDim (vectors); got ${vocabSize === undefined ? 'neither' : 'both'}.`,
  );
  const sizes = {
    vocabSize,
    inputDim,
    dModel,
    numLayers,
    numHeads,
    ffnDim: options.ffnDim,
    maxLength,
    numClasses,
  };
  for (const [name, size] of Object.entries(sizes)) {
    if (size !== undefined || name === 'dModel' || name === 'numLayers' || name === 'numHeads') {
      checkInteger(fn, name, size);
    }
  }
  check(
    dModel % numHeads === 0,
    fn,
    () => `expected dModel to be a multiple of numHeads (${numHeads}); got ${dModel}.`,
  );
  const {
    ffnDim = 4 * dModel,
    activation = 'gelu',
    causal = true,
    position = 'rotary',
    dropout = 0,
    layerNormEpsilon = 1e-5,
    maskZero = false,
    head = numClasses !== undefined ? 'classifier' : vocabSize !== undefined ? 'lm' : 'none',
    tieEmbeddings = true,
    pooling = 'mean',
    seed = 0,
  } = options;
  checkOneOf(fn, 'activation', activation, ['gelu', 'geluTanh', 'relu']);
  checkBoolean(fn, 'causal', causal);
  checkOneOf(fn, 'position', position, ['rotary', 'learned', 'sinusoidal', 'none']);
  checkNumber(fn, 'layerNormEpsilon', layerNormEpsilon, {min: 0, exclusive: true});
  checkBoolean(fn, 'maskZero', maskZero);
  checkBoolean(fn, 'tieEmbeddings', tieEmbeddings);
  checkOneOf(fn, 'head', head, ['lm', 'classifier', 'none']);
  checkOneOf(fn, 'pooling', pooling, POOLINGS);
  checkInteger(fn, 'seed', seed, Number.MIN_SAFE_INTEGER);
  check(
    typeof dropout === 'number' && dropout >= 0 && dropout < 1,
    fn,
    () => `expected dropout to be a number in [0, 1); got ${show(dropout)}.`,
  );
  const attention = attentionPerLayer(fn, options.attention ?? 'linear', numLayers);
  checkCombinations(fn, options, {head, position, attention});
  return {
    ...{vocabSize, inputDim, dModel, numLayers, numHeads, ffnDim, activation, attention, causal, featureMap},
    ...{
      position,
      maxLength,
      dropout,
      layerNormEpsilon,
      tieEmbeddings,
      maskZero,
      head,
      numClasses,
      pooling,
      seed,
    },
  };
}

function attentionPerLayer(fn: string, given: unknown, numLayers: number): readonly AttentionKind[] {
  const kinds: unknown[] = Array.isArray(given) ? given : Array(numLayers).fill(given);
  check(
    kinds.length === numLayers,
    fn,
    () => `expected attention to have one entry per layer (${numLayers}); got ${kinds.length}.`,
  );
  for (const [layer, kind] of kinds.entries()) {
    checkOneOf(fn, Array.isArray(given) ? `attention[${layer}]` : 'attention', kind, ['linear', 'softmax']);
  }
  return kinds as AttentionKind[];
}

/** Options that need, or make no sense with, others. */
function checkCombinations(
  fn: string,
  {
    vocabSize,
    dModel,
    numHeads,
    maxLength,
    numClasses,
    tieEmbeddings,
    pooling,
    maskZero,
    featureMap,
    causal = true,
  }: TransformerOptions,
  {head, position, attention}: {head: Head; position: PositionKind; attention: readonly AttentionKind[]},
): void {
  const size = dModel / numHeads;
  const rules: [boolean, string][] = [
    [
      position !== 'rotary' || size % 2 === 0,
      `expected dModel / numHeads to be even with position 'rotary'; got ${size}.`,
    ],
    [
      position !== 'learned' || maxLength !== undefined,
      "expected maxLength, which position 'learned' needs; got none.",
    ],
    [head !== 'lm' || vocabSize !== undefined, "expected vocabSize, which head 'lm' needs; got inputDim."],
    [
      head !== 'classifier' || numClasses !== undefined,
      "expected numClasses, which head 'classifier' needs; got none.",
    ],
    [
      head === 'classifier' || numClasses === undefined,
      `numClasses is for head 'classifier'; the head is '${head}'.`,
    ],
    [
      head === 'classifier' || pooling === undefined,
      `pooling is for head 'classifier'; the head is '${head}'.`,
    ],
    [head === 'lm' || tieEmbeddings !== true, `tieEmbeddings is for head 'lm'; the head is '${head}'.`],
    [maskZero !== true || vocabSize !== undefined, 'maskZero is for ids (vocabSize); got inputDim.'],
    [
      featureMap === undefined || attention.includes('linear'),
      "featureMap is for linear attention layers; every layer's attention is 'softmax'.",
    ],
  ];
  for (const [holds, message] of rules) {
    check(holds, fn, () => message);
  }
  if (featureMap !== undefined) {
    checkMap(fn, featureMap, {causal, size, numHeads});
  }
}

/** What the attention layers would refuse once tensors of other layers exist: nothing of a refused model is left then. */
function checkMap(
  fn: string,
  featureMap: string | FeatureMap,
  {causal, size, numHeads}: {causal: boolean; size: number; numHeads: number},
): void {
  const map = resolveFeatureMap(featureMap, fn);
  check(
    !causal || map.causal !== false,
    fn,
    () => `feature map '${map.name}' looks at the whole sequence and cannot be causal; got causal = true.`,
  );
  map.weights?.(size, numHeads); // throws where the map does not fit
}
