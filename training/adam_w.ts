import * as tf from '@tensorflow/tfjs-core';
import {type AdamWRates, type AdamWTensors, hasAdamWKernel, runAdamW} from '../src/adam_w/spec';
import {check, checkNumber, checkOptions, fail, show, showShape} from '../src/errors';
import {registeredVariable} from '../src/tfjs';

/** Options of `adamW`. */
export interface AdamWOptions {
  /** Step size. Default 1e-3. May be set on the optimizer at any time (`optimizer.learningRate = ...`). */
  learningRate?: number;
  /** Decay of the mean of the gradients. Default 0.9. */
  beta1?: number;
  /** Decay of the mean of their squares. Default 0.95, usual for transformers. */
  beta2?: number;
  /** Added to the root of the second moment. Default 1e-8. */
  epsilon?: number;
  /** Decoupled weight decay, per unit of learning rate. Default 0.01. */
  weightDecay?: number;
  /**
   * Weights whose name contains one of these after its last slash are not decayed, nor is any of rank 0 or 1.
   * Default `['bias', 'gamma', 'beta']`: attention's biases [H,r] have rank 2.
   */
  exclude?: string[];
}

/** As tfjs's optimizers give and take their slots. */
export interface NamedTensor {
  name: string;
  tensor: tf.Tensor;
}

const DEFAULTS = {
  learningRate: 1e-3,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0.01,
  exclude: ['bias', 'gamma', 'beta'],
};

/** First and second moment of one weight's gradients. */
interface Slots {
  name: string;
  m: tf.Variable;
  v: tf.Variable;
}

/**
 * Adam with decoupled weight decay (Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101, algorithm 2). After
 * t steps, with m and v the decayed means of the gradients and of their squares:
 *
 *     mhat = m / (1 - beta1^t)      vhat = v / (1 - beta2^t)
 *     w = w - learningRate (mhat / (sqrt(vhat) + epsilon) + weightDecay w)
 *
 * A `tf.Optimizer`: works with `model.compile` and `minimize`; `getWeights` and `setWeights` save and restore its slots.
 */
export class AdamW extends tf.Optimizer {
  static get className(): string {
    return 'AdamW';
  }
  learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  readonly exclude: readonly string[];
  /** In the order in which the weights were first seen. */
  private slots = new Map<string, Slots>();
  /** Restored slots which no weight has claimed yet. */
  private unclaimed: Slots[] = [];

  constructor(options: AdamWOptions = {}) {
    super();
    const all = {...DEFAULTS, ...options};
    this.learningRate = all.learningRate;
    this.beta1 = all.beta1;
    this.beta2 = all.beta2;
    this.epsilon = all.epsilon;
    this.weightDecay = all.weightDecay;
    this.exclude = [...all.exclude];
  }

  override applyGradients(gradients: tf.NamedTensorMap | NamedTensor[]): void {
    const named = Array.isArray(gradients)
      ? gradients
      : Object.keys(gradients).map((name) => ({name, tensor: gradients[name]}));
    const t = this.iterations + 1;
    // (m / c1) / (sqrt(v / c2) + eps) = m (sqrt(c2) / c1) / (sqrt(v) + eps sqrt(c2)): the corrections act on scalars.
    const root = Math.sqrt(1 - this.beta2 ** t);
    const {beta1, beta2, learningRate} = this;
    const rates: AdamWRates = {
      beta1,
      beta2,
      epsilon: this.epsilon * root,
      rate: (learningRate * root) / (1 - beta1 ** t),
      keep: 1 - learningRate * this.weightDecay,
    };
    tf.tidy(() => {
      const scalars = hasAdamWKernel() ? null : scalarsOf(rates);
      for (const {name, tensor} of named) {
        if (tensor != null) {
          this.update(name, tensor, rates, scalars);
        }
      }
    });
    this.incrementIterations();
  }

  private update(name: string, gradient: tf.Tensor, rates: AdamWRates, scalars: Scalars | null): void {
    const weight = registeredVariable(name);
    check(weight !== undefined, 'AdamW', () => `there is no variable named '${name}'.`);
    const {m, v} = this.slotsOf(weight);
    const decayed = this.weightDecay !== 0 && this.decays(weight);
    tf.tidy(() => {
      const tensors = {w: weight, g: gradient, m, v};
      const [newWeight, newM, newV] =
        scalars === null
          ? runAdamW(tensors, decayed ? rates : {...rates, keep: 1})
          : composedStep(tensors, scalars, decayed);
      weight.assign(newWeight);
      m.assign(newM);
      v.assign(newV);
    });
  }

  /** Whether weight decay acts on a weight. */
  decays(weight: {name: string; shape: readonly number[]}): boolean {
    const last = weight.name.slice(weight.name.lastIndexOf('/') + 1);
    return weight.shape.length >= 2 && !this.exclude.some((part) => last.includes(part));
  }

  private slotsOf(weight: tf.Variable): Slots {
    let found = this.slots.get(weight.name);
    if (found === undefined) {
      found = this.claim(weight) ?? {name: weight.name, m: zerosFor(weight), v: zerosFor(weight)};
      this.slots.set(weight.name, found);
    }
    return found;
  }

  /** Restored slots are claimed in their order: tfjs adds suffixes to the names of a second model's weights. */
  private claim(weight: tf.Variable): Slots | undefined {
    const [restored] = this.unclaimed;
    if (restored === undefined) {
      return undefined;
    }
    check(
      showShape(restored.m.shape) === showShape(weight.shape),
      'AdamW',
      () =>
        `expected restored slots of shape ${showShape(weight.shape)} for '${weight.name}'; ` +
        `got ${showShape(restored.m.shape)} of '${restored.name}'.`,
    );
    this.unclaimed.shift();
    return {...restored, name: weight.name};
  }

  /** The live slots of a weight; null before its first update. */
  slotsFor(weight: tf.Variable): {m: tf.Variable; v: tf.Variable} | null {
    return this.slots.get(weight.name) ?? null;
  }

  /** Goes back to the state after `iterations` updates. Values are copied. */
  restore(
    iterations: number,
    slots: readonly {variable: tf.Variable; m: tf.TypedArray; v: tf.TypedArray}[],
  ): void {
    this.dispose();
    this.iterations_ = iterations;
    for (const {variable, m, v} of slots) {
      const make = (values: tf.TypedArray) =>
        variableOf(tf.tensor(values.slice(), variable.shape, 'float32'));
      this.slots.set(variable.name, {name: variable.name, m: make(m), v: make(v)});
    }
  }

  override dispose(): void {
    for (const {m, v} of this.allSlots()) {
      m.dispose();
      v.dispose();
    }
    this.slots.clear();
    this.unclaimed = [];
  }

  private allSlots(): Slots[] {
    return [...this.slots.values(), ...this.unclaimed];
  }

  /**
   * `iter`, then `<weight>/m` of every weight, then `<weight>/v` of every weight. The slots are the live variables (as
   * in tfjs's own optimizers); dispose only `iter`.
   */
  override async getWeights(): Promise<NamedTensor[]> {
    const all = this.allSlots();
    return [
      await this.saveIterations(),
      ...all.map(({name, m}) => ({name: `${name}/m`, tensor: m})),
      ...all.map(({name, v}) => ({name: `${name}/v`, tensor: v})),
    ];
  }

  /** Restores what `getWeights` gave. Values are copied; weights are matched by their order. */
  override async setWeights(values: NamedTensor[]): Promise<void> {
    const count = (values.length - 1) / 2;
    const matches =
      Number.isInteger(count) &&
      Array.from({length: count}).every(
        (_, i) => showShape(values[1 + i].tensor.shape) === showShape(values[1 + count + i].tensor.shape),
      );
    check(
      matches,
      'AdamW.setWeights',
      () =>
        `expected iter and the same number of /m and /v tensors; got ${values.map(({name}) => name).join(', ')}.`,
    );
    const slots = await this.extractIterations(values);
    this.dispose();
    this.unclaimed = Array.from({length: count}, (_, i) => ({
      name: slots[i].name.replace(/\/m$/, ''),
      m: variableOf(tf.clone(slots[i].tensor)),
      v: variableOf(tf.clone(slots[count + i].tensor)),
    }));
  }

  override getConfig(): tf.serialization.ConfigDict {
    const {learningRate, beta1, beta2, epsilon, weightDecay, exclude} = this;
    return {learningRate, beta1, beta2, epsilon, weightDecay, exclude: [...exclude]};
  }

  static override fromConfig<T extends tf.serialization.Serializable>(
    cls: tf.serialization.SerializableConstructor<T>,
    config: tf.serialization.ConfigDict,
  ): T {
    return new cls(config);
  }
}
tf.serialization.registerClass(AdamW);

type Scalars = ReturnType<typeof scalarsOf>;

/** Made once for all weights. */
function scalarsOf({beta1, beta2, epsilon, rate, keep}: AdamWRates) {
  return {
    beta1: tf.scalar(beta1),
    beta2: tf.scalar(beta2),
    rest1: tf.scalar(1 - beta1),
    rest2: tf.scalar(1 - beta2),
    epsilon: tf.scalar(epsilon),
    rate: tf.scalar(rate),
    keep: tf.scalar(keep),
  };
}

/** The step in stock operations, for backends without the kernel. Call it inside a tidy. */
function composedStep({w, g, m, v}: AdamWTensors, scalars: Scalars, decayed: boolean): tf.Tensor[] {
  const newM = tf.add(tf.mul(m, scalars.beta1), tf.mul(g, scalars.rest1));
  const newV = tf.add(tf.mul(v, scalars.beta2), tf.mul(tf.square(g), scalars.rest2));
  const change = tf.mul(tf.div(newM, tf.add(tf.sqrt(newV), scalars.epsilon)), scalars.rate);
  return [tf.sub(decayed ? tf.mul(w, scalars.keep) : w, change), newM, newV];
}

const zerosFor = (weight: tf.Variable): tf.Variable => variableOf(tf.zerosLike(weight));

/** A variable with a tensor's values; the tensor is disposed. */
function variableOf(tensor: tf.Tensor): tf.Variable {
  const made = tf.variable(tensor, false);
  tensor.dispose();
  return made;
}

/**
 * Creates an {@link AdamW} optimizer.
 *
 * @throws Error for unknown options and for values out of range.
 *
 * ```js
 * const optimizer = training.adamW({learningRate: 3e-4, weightDecay: 0.1});
 * training.compile(model, {optimizer});
 * ```
 */
export function adamW(options: AdamWOptions = {}): AdamW {
  const fn = 'training.adamW';
  checkOptions(fn, options, Object.keys(DEFAULTS));
  const all = {...DEFAULTS, ...options};
  checkNumber(fn, 'learningRate', all.learningRate, {min: 0});
  checkNumber(fn, 'epsilon', all.epsilon, {min: 0, exclusive: true});
  checkNumber(fn, 'weightDecay', all.weightDecay, {min: 0});
  for (const name of ['beta1', 'beta2'] as const) {
    if (!(typeof all[name] === 'number' && all[name] >= 0 && all[name] < 1)) {
      fail(fn, `expected ${name} to be a number in [0, 1); got ${show(all[name])}.`);
    }
  }
  check(
    Array.isArray(all.exclude) && all.exclude.every((part) => typeof part === 'string' && part !== ''),
    fn,
    () => `expected exclude to be an array of parts of weight names; got ${show(all.exclude)}.`,
  );
  return new AdamW(options);
}
