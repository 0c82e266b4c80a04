import * as tf from '@tensorflow/tfjs-core';
import {layers} from '@tensorflow/tfjs-layers';
import {type DropoutStream, dropout} from '../src/dropout';
import {check, checkNumber, checkOptions, show} from '../src/errors';
import {seedOfName} from '../src/random';

type LayerArgs = ConstructorParameters<typeof layers.Layer>[0];

/** Arguments of SeededDropout. */
export type SeededDropoutArgs = LayerArgs & {
  /** Probability that an element is set to 0, in [0, 1). */
  rate: number;
  /** Seed of the masks. Default: from the layer's name. `training.train` seeds every mask itself. */
  seed?: number;
};

const OPTIONS = ['rate', 'seed', 'name', 'trainable', 'dtype', 'inputShape', 'batchInputShape', 'batchSize'];

/**
 * Dropout with repeatable masks: while training, each element is 0 with probability `rate`, else divided by 1 - rate;
 * otherwise the input. tfjs's own Dropout draws from Math.random, or gives one mask for ever when it has a seed.
 *
 * Input and output: any shape. Passes masks on.
 *
 * ```js
 * const layer = layers.seededDropout({rate: 0.1, seed: 1});
 * const y = layer.apply(tf.ones([2, 8]), {training: true});
 * ```
 */
export class SeededDropout extends layers.Layer {
  static className = 'SeededDropout';
  /** Acts on each position alone: streams may run it token by token. */
  static timewise = true;
  readonly rate: number;
  readonly seed: number | undefined;
  private readonly stream: DropoutStream;

  constructor(args: SeededDropoutArgs) {
    super(args);
    this.rate = args.rate;
    this.seed = args.seed;
    this.stream = {seed: args.seed ?? seedOfName(this.name), calls: 0};
    this.supportsMasking = true;
  }

  override call(inputs: tf.Tensor | tf.Tensor[], kwargs: {training?: unknown}): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0] : inputs;
    return kwargs?.training === true ? dropout(x, this.rate, this.stream) : tf.clone(x);
  }

  override computeOutputShape(inputShape: (number | null)[]): (number | null)[] {
    return inputShape;
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {...super.getConfig(), rate: this.rate, ...(this.seed === undefined ? {} : {seed: this.seed})};
  }
}
tf.serialization.registerClass(SeededDropout);

/**
 * Creates a {@link SeededDropout}.
 *
 * ```js
 * const layer = tfla.layers.seededDropout({rate: 0.5, seed: 1});
 * layer.apply(tf.ones([1, 4])).print(); // [[1, 1, 1, 1]]: nothing is dropped outside training
 * ```
 *
 * @throws Error for unknown options, and rates outside [0, 1).
 */
export function seededDropout(args: SeededDropoutArgs): SeededDropout {
  const fn = 'layers.seededDropout';
  check(args !== undefined, fn, () => 'expected an options object with rate; got undefined.');
  checkOptions(fn, args, OPTIONS);
  check(
    typeof args.rate === 'number' && args.rate >= 0 && args.rate < 1,
    fn,
    () => `expected rate to be a number in [0, 1); got ${show(args.rate)}.`,
  );
  if (args.seed !== undefined) {
    checkNumber(fn, 'seed', args.seed);
  }
  return new SeededDropout(args);
}
