import type {LayersModel} from '@tensorflow/tfjs-layers';
import {LinearAttention} from '../layers';
import {convert} from '../models';
import type {FeatureMapLike} from '../ops';
import {check, checkInteger, checkOptions, checkSignal, show} from '../src/errors';
import {flatLayers} from '../src/tfjs_layers';
import {prepareData, type TokenIds, type TrainingData} from './data';
import {type DistilledLayer, type DistillOptions, distill} from './distill';
import {type Evaluation, evaluateTokens} from './evaluate';
import {checkLanguageModel} from './language_model';
import {train} from './train';
import type {TrainOptions} from './train_options';

/** What `models.convert` made, what the feature maps learned, what training of all weights added. */
export type LinearizeStage = 'softmax' | 'converted' | 'distilled' | 'fine-tuned';

/** Held-out quality after a stage. */
export interface StageReport extends Evaluation {
  stage: LinearizeStage;
  /** Bits per character more than the softmax model's. */
  lost: number;
  /** Bits per character less than the stage before. */
  regained: number;
}

/** Options of `linearize`. */
export interface LinearizeOptions {
  /** Default 'hedgehog'. A map without trainable weights has no 'distilled' stage. */
  featureMap?: FeatureMapLike;
  /** Names of the layers to convert. Default: every SoftmaxAttention layer. */
  layers?: readonly string[];
  /** Tokens to measure on, or a fraction of the data to keep out for it. Default `data.validation`, else 0.1. */
  validation?: TokenIds | number;
  /** Windows in one batch. Default 8. */
  batchSize?: number;
  /** T, tokens in one window. Default: the model's own length, else 64. */
  length?: number;
  /** Default 0. */
  seed?: number;
  /** Options of `training.distill`; false: no such stage. Default 200 steps. */
  distill?: Partial<DistillOptions> | false;
  /** Options of `training.train`; false: no such stage. Default 200 steps at a rate of 3e-4. */
  fineTune?: Partial<TrainOptions> | false;
  /** Stops after the current step; what was done is returned. */
  signal?: AbortSignal;
  /** Called after each stage. */
  onStage?: (report: StageReport) => void;
}

/** What `linearize` returns. */
export interface LinearizeResult {
  /** The converted model; the caller disposes it. */
  model: LayersModel;
  stages: StageReport[];
  /** Per layer, how far its weights were from softmax's; null without that stage. */
  distilled: DistilledLayer[] | null;
}

const FN = 'training.linearize';
const OPTIONS: readonly (keyof LinearizeOptions)[] = [
  'featureMap',
  'layers',
  'validation',
  'batchSize',
  'length',
  'seed',
  'distill',
  'fineTune',
  'signal',
  'onStage',
];

/**
 * From softmax to linear attention: converts a language model (`models.convert`), fits the feature maps to its softmax
 * weights layer by layer (`training.distill`), then trains all weights of the copy (`training.train`), and says after
 * each stage how well the model predicts held-out tokens. The model itself stays as it is.
 *
 * Zhang et al. 2024 (Hedgehog), https://arxiv.org/abs/2402.04347.
 *
 * ```js
 * const {model: linear, stages} = await training.linearize(model, tokens, {length: 64});
 * for (const {stage, perplexity, lost} of stages) console.log(stage, perplexity, lost);
 * ```
 *
 * @param model Ids [B,T] to logits [B,T,V], with SoftmaxAttention layers, trained.
 * @throws Error for bad options and data, before any work; and what the stages throw.
 */
export async function linearize(
  model: LayersModel,
  data: TrainingData,
  options: LinearizeOptions = {},
): Promise<LinearizeResult> {
  checkOptions(FN, options, OPTIONS);
  const {vocabSize, fixedLength} = checkLanguageModel(FN, model);
  const {batchSize = 8, length = fixedLength ?? 64, seed = 0, signal, onStage = () => {}} = options;
  checkInteger(FN, 'batchSize', batchSize);
  checkInteger(FN, 'length', length);
  checkInteger(FN, 'seed', seed, Number.MIN_SAFE_INTEGER);
  checkSignal(FN, signal);
  check(typeof onStage === 'function', FN, () => `expected onStage to be a function; got ${show(onStage)}.`);
  const hasOwn =
    data !== null && typeof data === 'object' && 'validation' in data && data.validation !== undefined;
  const held = options.validation ?? (hasOwn ? undefined : 0.1);
  const tokens = prepareData(FN, data, held, length, vocabSize);
  const validation = tokens.validation as Int32Array;

  const stages: StageReport[] = [];
  const measure = async (stage: LinearizeStage, measured: LayersModel) => {
    const maxWindows = Number.POSITIVE_INFINITY;
    const evaluation = await evaluateTokens(measured, validation, {batchSize, length, maxWindows});
    const bits = evaluation.bitsPerCharacter;
    const [first, before] = [stages[0]?.bitsPerCharacter ?? bits, stages.at(-1)?.bitsPerCharacter ?? bits];
    const report = {stage, ...evaluation, lost: bits - first, regained: before - bits};
    stages.push(report);
    onStage(report);
  };

  const linear = convert(model, {
    featureMap: options.featureMap ?? 'hedgehog',
    ...(options.layers && {layers: options.layers}),
  });
  try {
    await measure('softmax', model);
    await measure('converted', linear);
    const common = {batchSize, length, seed, ...(signal && {signal})};
    let distilled: DistilledLayer[] | null = null;
    if (options.distill !== false && learns(linear) && !signal?.aborted) {
      distilled = await distill(linear, model, tokens.train, {steps: 200, ...common, ...options.distill});
      await measure('distilled', linear);
    }
    if (options.fineTune !== false && !signal?.aborted) {
      await train(linear, tokens.train, {steps: 200, learningRate: 3e-4, ...common, ...options.fineTune});
      await measure('fine-tuned', linear);
    }
    return {model: linear, stages, distilled};
  } catch (error) {
    linear.dispose();
    throw error;
  }
}

/** Whether a converted layer's map has weights to fit. */
const learns = (model: LayersModel): boolean =>
  flatLayers(model).some(
    (layer) =>
      layer instanceof LinearAttention &&
      (layer.featureMap.weights?.(layer.options.keyDim, layer.options.numHeads) ?? []).some(
        ({trainable}) => trainable,
      ),
  );
