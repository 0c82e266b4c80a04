import * as tf from '@tensorflow/tfjs-core';
import {initializers, layers} from '@tensorflow/tfjs-layers';
import {check, checkNumber, show} from '../src/errors';
import {layerNorm as normalize} from '../src/layer_norm/run';
import {checkLayerArgs, type LayerArgs} from './layer_args';

/** Arguments of LayerNorm. */
export type LayerNormArgs = LayerArgs & {
  /** Added to the variance. Default 1e-5. */
  epsilon?: number;
};

/**
 * Layer normalization over the last axis (Ba et al. 2016, https://arxiv.org/abs/1607.06450):
 * gamma (x - mean) / sqrt(var + epsilon) + beta. The same numbers and weights (gamma [D], beta [D]) as
 * tf.layers.layerNormalization with its default axis; several times faster to train, because that layer's gradient
 * visits the rows one by one.
 *
 * Input and output: [.., D]. Passes masks on.
 *
 * ```js
 * const y = layers.layerNorm({epsilon: 1e-5}).apply(tf.randomNormal([2, 4, 8]));
 * ```
 */
export class LayerNorm extends layers.Layer {
  static className = 'LayerNorm';
  /** Acts on each position alone: streams may run it token by token. */
  static timewise = true;
  readonly epsilon: number;
  private gamma!: ReturnType<LayerNorm['addWeight']>;
  private beta!: ReturnType<LayerNorm['addWeight']>;

  constructor(args: LayerNormArgs = {}) {
    super(args);
    this.epsilon = args.epsilon ?? 1e-5;
    this.supportsMasking = true;
  }

  override build(inputShape: (number | null)[]): void {
    const size = inputShape[inputShape.length - 1];
    check(
      typeof size === 'number' && inputShape.length >= 2,
      `LayerNorm '${this.name}'`,
      () => `expected an input [.., D] with a known D; got shape ${show(inputShape)}.`,
    );
    this.gamma = this.addWeight('gamma', [size], 'float32', initializers.ones());
    this.beta = this.addWeight('beta', [size], 'float32', initializers.zeros());
    super.build(inputShape);
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0] : inputs;
    return normalize(x, this.gamma.read(), this.beta.read(), this.epsilon);
  }

  override computeOutputShape(inputShape: (number | null)[]): (number | null)[] {
    return inputShape;
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {...super.getConfig(), epsilon: this.epsilon};
  }
}
tf.serialization.registerClass(LayerNorm);

/**
 * Creates a {@link LayerNorm}.
 *
 * ```js
 * tfla.layers.layerNorm().apply(tf.tensor2d([[1, 3]])).print(); // [[-0.999995, 0.999995]]
 * ```
 *
 * @throws Error for unknown arguments, and an epsilon below 0.
 */
export function layerNorm(args: LayerNormArgs = {}): LayerNorm {
  const fn = 'layers.layerNorm';
  checkLayerArgs(fn, args, ['epsilon']);
  if (args.epsilon !== undefined) {
    checkNumber(fn, 'epsilon', args.epsilon, {min: 0});
  }
  return new LayerNorm(args);
}
