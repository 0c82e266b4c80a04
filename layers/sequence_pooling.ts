import * as tf from '@tensorflow/tfjs-core';
import {layers} from '@tensorflow/tfjs-layers';
import {isNonZero} from '../src/conditions';
import {check, checkOneOf, showShape} from '../src/errors';
import {checkLayerArgs, type LayerArgs} from './layer_args';
import {believedMasks} from './masks';

type Shape = (number | null)[];

/** How a sequence becomes one vector. */
export type Pooling = 'mean' | 'max' | 'last';

export const POOLINGS: readonly Pooling[] = ['mean', 'max', 'last'];

/** Arguments of SequencePooling. */
export type SequencePoolingArgs = LayerArgs & {
  /** 'mean' (default), 'max', or 'last': the last position. Over the positions that the mask keeps. */
  pooling?: Pooling;
};

/**
 * [B,T,D] gives [B,D]: the mean, the maximum or the last of the positions that the mask keeps (all without a mask).
 * A row with no position kept gives 0. What stands at a masked position, even NaN, has no effect.
 *
 * ```js
 * const layer = layers.sequencePooling({pooling: 'last'});
 * ```
 */
export class SequencePooling extends layers.Layer {
  static className = 'SequencePooling';
  readonly pooling: Pooling;

  constructor(args: SequencePoolingArgs = {}) {
    super(args);
    this.pooling = args.pooling ?? 'mean';
    this.supportsMasking = true;
  }

  override computeOutputShape(inputShape: Shape): Shape {
    check(
      inputShape.length === 3,
      `SequencePooling '${this.name}'`,
      () => `expected an input [B,T,D]; got ${showShape(inputShape)}.`,
    );
    return [inputShape[0], inputShape[2]];
  }

  override computeMask(): tf.Tensor {
    return null as never; // The sequence is gone, and its mask with it.
  }

  override call(
    inputs: tf.Tensor | tf.Tensor[],
    kwargs?: {mask?: tf.Tensor | tf.Tensor[] | null},
  ): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0] : inputs;
    const [batch, length] = x.shape;
    // tfjs hands on masks past layers that drop them.
    const [given] = believedMasks(`layer ${this.name}`, inputs, kwargs?.mask, this.inboundNodes);
    return tf.tidy(() => {
      const kept =
        given instanceof tf.Tensor
          ? isNonZero(tf.reshape(given, [batch, length, 1]))
          : tf.ones([batch, length, 1], 'bool');
      const count = tf.sum(tf.cast(kept, 'float32'), 1); // [B,1]
      const zero = tf.zerosLike(x);
      if (this.pooling === 'max') {
        const highest = tf.max(tf.where(kept, x, tf.fill(x.shape, Number.NEGATIVE_INFINITY)), 1);
        return tf.where(tf.greater(count, 0), highest, tf.zerosLike(highest));
      }
      const sum = (of: tf.Tensor) => tf.sum(tf.where(of, x, zero), 1);
      if (this.pooling === 'mean') {
        return tf.div(sum(kept), tf.maximum(count, 1));
      }
      const places = tf.mul(tf.reshape(tf.range(1, length + 1), [1, length, 1]), tf.cast(kept, 'float32'));
      return sum(tf.logicalAnd(kept, tf.equal(places, tf.max(places, 1, true))));
    });
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {...super.getConfig(), pooling: this.pooling};
  }
}
tf.serialization.registerClass(SequencePooling);

/**
 * Creates a {@link SequencePooling}.
 *
 * ```js
 * const layer = tfla.layers.sequencePooling({pooling: 'max'});
 * layer.apply(tf.tensor3d([[[1, 4], [3, 2]]])).print(); // [[3, 4]]
 * ```
 *
 * @throws Error for unknown arguments and kinds.
 */
export function sequencePooling(args: SequencePoolingArgs = {}): SequencePooling {
  const fn = 'layers.sequencePooling';
  checkLayerArgs(fn, args, ['pooling']);
  if (args.pooling !== undefined) {
    checkOneOf(fn, 'pooling', args.pooling, POOLINGS);
  }
  return new SequencePooling(args);
}
