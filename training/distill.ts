import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {LinearAttention, SoftmaxAttention} from '../layers';
import {impliedAttention, softmaxAttention} from '../ops';
import {check, checkInteger, checkNumber, checkOptions, checkSignal, show} from '../src/errors';
import {wasmTraining} from '../src/patches/wasm_training';
import {mixSeed} from '../src/random';
import {flatLayers} from '../src/tfjs_layers';
import {AdamW} from './adam_w';
import {type TokenIds, toTokens, Windows} from './data';
import {nextTask} from './event_loop';
import {checkLanguageModel} from './language_model';

/** Options of `distill`. */
export interface DistillOptions {
  /** Updates of the feature maps. */
  steps: number;
  /** Windows in one update. Default 8. */
  batchSize?: number;
  /** T, tokens in one window; the weights compared are [batchSize, heads, T, T]. Default: the model's own, else 64. */
  length?: number;
  /** Of AdamW without weight decay. Default 0.01. */
  learningRate?: number;
  /** Of the order of windows. Default 0. */
  seed?: number;
  /** Stops after the current step. */
  signal?: AbortSignal;
  /** Called after each step with the mean over layers of what `DistilledLayer` calls divergence. */
  onProgress?: (progress: {step: number; steps: number; divergence: number}) => void;
}

/** How near one layer came to its softmax original. */
export interface DistilledLayer {
  name: string;
  /**
   * Mean over heads and rows of the Kullback-Leibler divergence from softmax weights to linear ones, in nats; 0 where
   * they agree. In the first step, before its update.
   */
  before: number;
  /** In the last step. */
  after: number;
}

interface Pair {
  student: LinearAttention;
  teacher: SoftmaxAttention;
  variables: tf.Variable[];
}

const FN = 'training.distill';
const OPTIONS = ['steps', 'batchSize', 'length', 'learningRate', 'seed', 'signal', 'onProgress'];
/** Weights below it count as it: a map that gives 0 where softmax does not must have a way back. */
const SMALLEST_WEIGHT = 1e-6;

/**
 * Attention transfer: trains the feature maps of a converted model, and nothing else in it, until each layer's implied
 * weights resemble the softmax weights of the original, on the queries and keys of the original (cross entropy, layer by
 * layer). Zhang et al. 2024 (Hedgehog), https://arxiv.org/abs/2402.04347, section 4.2.
 *
 * The usual way is `training.linearize`, which does this between converting and fine-tuning.
 *
 * ```js
 * const student = models.convert(teacher, {featureMap: 'hedgehog'});
 * const layers = await training.distill(student, teacher, tokens, {steps: 100, length: 32});
 * console.log(layers[0].before, layers[0].after);
 * ```
 *
 * @param student What `models.convert` made of `teacher`: its LinearAttention layers have the names of softmax ones.
 * @param data Token ids.
 * @throws Error for wrong models and options, and when no feature map has trainable weights.
 */
export async function distill(
  student: tfl.LayersModel,
  teacher: tfl.LayersModel,
  data: TokenIds,
  options: DistillOptions,
): Promise<DistilledLayer[]> {
  const {vocabSize, fixedLength} = checkLanguageModel(FN, teacher);
  checkLanguageModel(FN, student);
  const run = resolve(options, fixedLength);
  const tokens = toTokens(FN, 'data', data, run.length, vocabSize);
  const pairs = pairsOf(student, teacher);
  wasmTraining();
  const optimizer = new AdamW({learningRate: run.learningRate, weightDecay: 0});
  const windows = new Windows(tokens, run.length, mixSeed(run.seed, 5));
  const report = pairs.map(({student: {name}}) => ({name, before: Number.NaN, after: Number.NaN}));
  try {
    for (let step = 0; step < run.steps && !run.signal?.aborted; step++) {
      const batch = windows.batch(step * run.batchSize, run.batchSize);
      const measured = update(pairs, teacher, batch.inputs, [run.batchSize, run.length], optimizer);
      const divergences = Array.from(await measured.data());
      measured.dispose();
      divergences.forEach((divergence, i) => {
        check(
          Number.isFinite(divergence),
          FN,
          () => `the divergence of layer '${report[i].name}' is ${divergence} in step ${step + 1}.`,
        );
        if (step === 0) report[i].before = divergence;
        report[i].after = divergence;
      });
      const mean = divergences.reduce((a, b) => a + b, 0) / divergences.length;
      run.onProgress({step: step + 1, steps: run.steps, divergence: mean});
      await nextTask();
    }
  } finally {
    optimizer.dispose();
  }
  return report;
}

function resolve(options: DistillOptions, fixedLength: number | null) {
  checkOptions(FN, options ?? null, OPTIONS);
  const {steps, learningRate = 0.01, batchSize = 8, length = fixedLength ?? 64, seed = 0} = options;
  const {signal, onProgress = () => {}} = options;
  for (const [name, value] of Object.entries({steps, batchSize, length})) {
    checkInteger(FN, name, value);
  }
  checkNumber(FN, 'learningRate', learningRate, {min: 0, exclusive: true});
  checkInteger(FN, 'seed', seed, Number.MIN_SAFE_INTEGER);
  checkSignal(FN, signal);
  check(
    typeof onProgress === 'function',
    FN,
    () => `expected onProgress to be a function; got ${show(onProgress)}.`,
  );
  return {steps, learningRate, batchSize, length, seed, signal, onProgress};
}

/** The linear layers that stand where the teacher has softmax ones, and that have something to learn. */
function pairsOf(student: tfl.LayersModel, teacher: tfl.LayersModel): Pair[] {
  const originals = new Map(
    flatLayers(teacher)
      .filter((layer) => layer instanceof SoftmaxAttention)
      .map((layer) => [layer.name, layer]),
  );
  const linear = flatLayers(student).filter((layer) => layer instanceof LinearAttention);
  const pairs = linear.flatMap((layer) => {
    const original = originals.get(layer.name);
    const weights = Object.values(layer.featureMapWeights() ?? {});
    const variables = weights.filter((weight) => weight instanceof tf.Variable && weight.trainable);
    return original === undefined || variables.length === 0
      ? []
      : [{student: layer, teacher: original, variables: variables as tf.Variable[]}];
  });
  check(
    pairs.length > 0,
    FN,
    () =>
      'expected student to have LinearAttention layers with trainable feature maps (such as hedgehog) under the names of ' +
      `SoftmaxAttention layers of teacher (${[...originals.keys()].map((name) => `'${name}'`).join(', ') || 'none'}).`,
  );
  return pairs;
}

/** One update of all maps; the divergence of each layer before it, [layers]. */
function update(
  pairs: Pair[],
  teacher: tfl.LayersModel,
  ids: Int32Array,
  shape: [number, number],
  optimizer: AdamW,
): tf.Tensor {
  return tf.tidy(() => {
    const inputs = inputsOf(pairs, teacher, tf.tensor2d(ids, shape, 'int32'));
    const named: {name: string; tensor: tf.Tensor}[] = [];
    const divergences = pairs.map((pair, i) => {
      const [query, value = query, key = value] = inputs[i];
      const {q, k} = headsFirst(pair.teacher.heads(query, value, key));
      const {causal} = pair.teacher.options;
      const weights = softmaxWeights(q, k, causal);
      const {value: loss, grads} = tf.variableGrads(
        () => crossEntropy(weights, linearWeights(pair.student, q, k, causal)) as tf.Scalar,
        pair.variables,
      );
      named.push(...Object.entries(grads).map(([name, tensor]) => ({name, tensor})));
      return tf.sub(loss, crossEntropy(weights, weights));
    });
    optimizer.applyGradients(named);
    return tf.stack(divergences);
  });
}

/** What each of the teacher's layers is given when the model reads a batch. */
function inputsOf(pairs: Pair[], teacher: tfl.LayersModel, ids: tf.Tensor): tf.Tensor[][] {
  const inputs: tf.Tensor[][] = pairs.map(() => []);
  try {
    pairs.forEach(({teacher: layer}, i) => {
      layer.setCallHook((given) => {
        inputs[i] = [given].flat().map((x) => tf.keep(tf.clone(x as tf.Tensor)));
      });
    });
    tf.tidy(() => void teacher.apply(ids, {training: false}));
  } finally {
    for (const {teacher: layer} of pairs) layer.clearCallHook();
  }
  // Handed over to the tidy that this runs in.
  return inputs.map((list) =>
    list.map((x) => {
      const mine = tf.clone(x);
      x.dispose();
      return mine;
    }),
  );
}

/** [B,N,H,.] to [B,H,N,.] */
function headsFirst({q, k}: {q: tf.Tensor4D; k: tf.Tensor4D}): {q: tf.Tensor4D; k: tf.Tensor4D} {
  return {q: tf.transpose(q, [0, 2, 1, 3]), k: tf.transpose(k, [0, 2, 1, 3])};
}

/** [B,H,Nq,Nk]: with unit vectors for values, what a query collects is its weights. */
function softmaxWeights(q: tf.Tensor4D, k: tf.Tensor4D, causal: boolean): tf.Tensor {
  const [B, H, N] = k.shape;
  return softmaxAttention(q, k, tf.tile(tf.reshape(tf.eye(N), [1, 1, N, N]), [B, H, 1, 1]), {causal});
}

function linearWeights(layer: LinearAttention, q: tf.Tensor4D, k: tf.Tensor4D, causal: boolean): tf.Tensor {
  const featureMapWeights = layer.featureMapWeights();
  return impliedAttention(q, k, {
    featureMap: layer.featureMap,
    causal,
    ...(featureMapWeights && {featureMapWeights}),
  });
}

/** Mean over rows of -sum_j target_j log(got_j), in nats. */
function crossEntropy(target: tf.Tensor, got: tf.Tensor): tf.Tensor {
  const products = tf.mul(target, tf.log(tf.maximum(got, SMALLEST_WEIGHT)));
  return tf.neg(tf.mean(tf.sum(products, -1)));
}
