import * as tf from '@tensorflow/tfjs-core';
import {layers} from '@tensorflow/tfjs-layers';
import {type GeluOptions, gelu as geluOp} from '../ops/gelu';
import {checkOneOf} from '../src/errors';
import {checkLayerArgs, type LayerArgs} from './layer_args';

/** Arguments of Gelu. */
export type GeluArgs = LayerArgs & GeluOptions;

/**
 * gelu as a layer. Input and output: any shape. Passes masks on. Trains on every backend.
 *
 * ```js
 * const layer = layers.gelu({approximate: 'tanh'});
 * ```
 */
export class Gelu extends layers.Layer {
  static className = 'Gelu';
  /** Acts on each position alone: streams may run it token by token. */
  static timewise = true;
  readonly approximate: 'none' | 'tanh';

  constructor(args: GeluArgs = {}) {
    super(args);
    this.approximate = args.approximate ?? 'none';
    this.supportsMasking = true;
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0] : inputs;
    return geluOp(x, {approximate: this.approximate});
  }

  override computeOutputShape(inputShape: (number | null)[]): (number | null)[] {
    return inputShape;
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {...super.getConfig(), approximate: this.approximate};
  }
}
tf.serialization.registerClass(Gelu);

/**
 * Creates a {@link Gelu}.
 *
 * ```js
 * tfla.layers.gelu().apply(tf.tensor2d([[-1, 0, 1]])).print(); // [[-0.1586553, 0, 0.8413447]]
 * ```
 *
 * @throws Error for unknown arguments and forms.
 */
export function gelu(args: GeluArgs = {}): Gelu {
  const fn = 'layers.gelu';
  checkLayerArgs(fn, args, ['approximate']);
  if (args.approximate !== undefined) {
    checkOneOf(fn, 'approximate', args.approximate, ['none', 'tanh']);
  }
  return new Gelu(args);
}
