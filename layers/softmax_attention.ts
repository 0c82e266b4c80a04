/** Softmax attention as a Keras-style layer: the peer of LinearAttention, and trainable in tfjs. */
import * as tf from '@tensorflow/tfjs-core';
import {check, checkInteger, show} from '../src/errors';
import {attend} from '../src/softmax_attention';
import {attendToCache, capacityFor, type SoftmaxCache} from '../src/softmax_cache';
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

  /** An empty cache of keys [B,H,0,keyDim] and values [B,H,0,valueDim] (src/softmax_cache.ts). It grows with the tokens. */
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
    const {q, k, v} = this.rotateInput(heads, positions);
    const [batch, tokens] = q.shape;
    const cache = this.cacheOf(state, batch);
    const {output, cache: next} = attendToCache(headsFirst(q), headsFirst(k), headsFirst(v), cache, {
      scale: 1 / Math.sqrt(this.options.keyDim),
      mask,
      capacity: capacityFor(cache.length + tokens),
    });
    return {output: headsFirst(output), state: {...next}};
  }

  private cacheOf(state: StreamState, batch: number): SoftmaxCache {
    const fn = `${this.fn}.streamCall`;
    const {numHeads, keyDim, valueDim} = this.options;
    const k = checkStateTensor(fn, state, 'k', [batch, numHeads, null, keyDim]) as tf.Tensor4D;
    const capacity = k.shape[2];
    const v = checkStateTensor(fn, state, 'v', [batch, numHeads, capacity, valueDim]) as tf.Tensor4D;
    const length = state['length'];
    check(
      typeof length === 'number' && length <= capacity,
      fn,
      () => `expected state.length to be a number of at most ${capacity}; got ${show(length)}.`,
    );
    if (length === capacity && state['mask'] === undefined) {
      return {k, v, length};
    }
    return {k, v, length, mask: checkStateTensor(fn, state, 'mask', [batch, capacity]) as tf.Tensor2D};
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
 * const layer = tfla.layers.softmaxAttention({numHeads: 4, keyDim: 16, causal: true});
 * layer.apply(tf.randomNormal([2, 10, 64])).print(); // [2,10,64]
 * ```
 *
 * @throws Error for unknown arguments and values out of range; those of Keras come with a hint.
 */
export const softmaxAttention = (args: SoftmaxAttentionArgs): SoftmaxAttention => new SoftmaxAttention(args);
