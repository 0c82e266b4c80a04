/** Softmax attention as a Keras-style layer: the peer of LinearAttention, and trainable in tfjs. */
import * as tf from '@tensorflow/tfjs-core';
import {softmaxAttentionChunk} from '../ops/softmax_attention_chunk';
import {checkInteger} from '../src/errors';
import {attend} from '../src/softmax_attention';
import {type AttentionArgs, argsFromConfig} from './args';
import {AttentionLayer, type CallContext, type Heads} from './attention_base';
import {checkStateTensor, type StreamContext, type StreamState} from './streaming';

const FN = 'SoftmaxAttention';

/** Arguments of SoftmaxAttention. rotary is false or 'input'. */
export interface SoftmaxAttentionArgs extends AttentionArgs {
  rotary?: false | 'input';
}

/**
 * Multi-head softmax attention, `softmax(q k^T / sqrt(keyDim)) v`, with the weights of Keras's MultiHeadAttention in
 * its order: query_kernel [D,H,keyDim], query_bias, key_kernel, key_bias, value_kernel [D,H,valueDim], value_bias,
 * output_kernel [H,valueDim,outputDim], output_bias. Time and memory grow with the square of the length.
 *
 * Calls, masks and arguments are those of LinearAttention, without featureMap, normalize and epsilon. Dropout applies
 * to the attention weights, while training only.
 *
 * Source: Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, section 3.2.
 */
export class SoftmaxAttention extends AttentionLayer {
  /** @nocollapse */
  static className = FN;

  constructor(args: SoftmaxAttentionArgs) {
    super(FN, args, [], ['input']);
  }

  protected override attend(heads: Heads, {mask, training}: CallContext): tf.Tensor4D {
    const {q, k, v} = this.rotateInput(heads, 0);
    const {causal, keyDim, numHeads, valueDim} = this.options;
    const [batch, queries] = q.shape;
    if (batch * queries * k.shape[1] === 0) {
      return tf.zeros([batch, queries, numHeads, valueDim]);
    }
    const output = attend(headsFirst(q), headsFirst(k), headsFirst(v), {
      scale: 1 / Math.sqrt(keyDim),
      causal,
      mask,
      onWeights: (weights) => this.drop(weights, training),
    });
    return headsFirst(output);
  }

  /** An empty cache: keys [B,H,0,keyDim], values [B,H,0,valueDim]. It grows by one row per token. */
  streamState(batchSize: number): StreamState {
    this.checkCanStream();
    checkInteger(`${this.fn}.streamState`, 'batchSize', batchSize);
    const {numHeads, keyDim, valueDim} = this.options;
    return {
      k: tf.zeros([batchSize, numHeads, 0, keyDim]),
      v: tf.zeros([batchSize, numHeads, 0, valueDim]),
      length: 0,
    };
  }

  protected override attendStream(heads: Heads, state: StreamState, {positions, mask}: StreamContext) {
    const fn = `${this.fn}.streamCall`;
    const {numHeads, keyDim, valueDim} = this.options;
    const {q, k, v} = this.rotateInput(heads, positions);
    const batch = q.shape[0];
    const cachedKeys = checkStateTensor(fn, state, 'k', [batch, numHeads, null, keyDim]);
    const length = cachedKeys.shape[2] ?? 0;
    const cache = {
      k: cachedKeys as tf.Tensor4D,
      v: checkStateTensor(fn, state, 'v', [batch, numHeads, length, valueDim]) as tf.Tensor4D,
      ...(state['mask'] === undefined
        ? {}
        : {mask: checkStateTensor(fn, state, 'mask', [batch, length]) as tf.Tensor2D}),
      length,
      maxLength: Number.POSITIVE_INFINITY,
    };
    const {output, cache: next} = softmaxAttentionChunk(headsFirst(q), headsFirst(k), headsFirst(v), cache, {
      mask,
    });
    return {
      output: headsFirst(output),
      state: {k: next.k, v: next.v, ...(next.mask && {mask: next.mask}), length: next.length},
    };
  }

  /** @nocollapse */
  static override fromConfig<T extends tf.serialization.Serializable>(
    cls: tf.serialization.SerializableConstructor<T>,
    config: tf.serialization.ConfigDict,
  ): T {
    return new cls(argsFromConfig(config, []));
  }
}
tf.serialization.registerClass(SoftmaxAttention);

/** [B,N,H,.] <-> [B,H,N,.] */
const headsFirst = (x: tf.Tensor4D): tf.Tensor4D => tf.transpose(x, [0, 2, 1, 3]);

/**
 * A SoftmaxAttention layer.
 *
 * ```js
 * const layer = lattn.layers.softmaxAttention({numHeads: 4, keyDim: 16, causal: true});
 * layer.apply(tf.randomNormal([2, 10, 64])).print(); // [2,10,64]
 * ```
 */
export const softmaxAttention = (args: SoftmaxAttentionArgs): SoftmaxAttention => new SoftmaxAttention(args);
