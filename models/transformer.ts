import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {gelu} from '../layers/gelu';
import {layerNorm} from '../layers/layer_norm';
import {linearAttention} from '../layers/linear_attention';
import {positionEmbedding} from '../layers/position_embedding';
import {seededDropout} from '../layers/seeded_dropout';
import {sequencePooling} from '../layers/sequence_pooling';
import {softmaxAttention} from '../layers/softmax_attention';
import {tiedEmbedding} from '../layers/tied_embedding';
import {mixSeed} from '../src/random';
import {type ResolvedOptions, resolveOptions, type TransformerOptions} from './transformer_options';

type Symbolic = tfl.SymbolicTensor;

/**
 * A transformer with linear or softmax attention, for ids or vectors: embeddings, pre-norm blocks
 * (Xiong et al. 2020, https://arxiv.org/abs/2002.04745)
 *
 *     x = x + attention(norm(x));   x = x + ffn(norm(x))
 *
 * a last norm, and a head that gives logits (no softmax). T, the length, and B, the batch, are free at every call.
 *
 * ```js
 * const model = models.transformer({vocabSize: 65, dModel: 64, numLayers: 2, numHeads: 4, seed: 1});
 * const logits = model.predict(tf.tensor2d([[1, 2, 3]], [1, 3], 'int32'));  // [1, 3, 65]
 * ```
 *
 * Layers are named token_embedding or input_projection, position_embedding, block_0_attention_norm, block_0_attention,
 * block_0_ffn_norm, block_0_ffn_in, block_0_ffn_out, .., final_norm, and head (lm, untied) or pooling and classifier.
 *
 * @param options see TransformerOptions; vocabSize or inputDim, dModel, numLayers and numHeads must be given.
 * @returns an uncompiled tf.LayersModel; `training.compile` and `generation.stream` take it.
 * @throws on unknown options, and on values or combinations that make no model.
 */
export function transformer(options: TransformerOptions): tfl.LayersModel {
  const o = resolveOptions('models.transformer', options);
  const build = new Builder(o);
  const {input, embedded, logits} = build.ends();
  let x = build.drop('embedding_dropout', build.position(embedded));
  for (let block = 0; block < o.numLayers; block++) {
    const name = `block_${block}`;
    x = build.residual(`${name}_attention`, x, (y) =>
      build.attention(`${name}_attention`, o.attention[block], y),
    );
    x = build.residual(`${name}_ffn`, x, (y) => build.feedForward(`${name}_ffn`, y));
  }
  return tfl.model({inputs: input, outputs: logits(build.norm('final_norm', x)), name: 'transformer'});
}

/** Makes the layers, each with a seed of its own, and applies them. */
class Builder {
  private seeds = 0;

  constructor(private readonly o: ResolvedOptions) {}

  /** The input with its embedding, and the head that belongs to them. */
  ends(): {input: Symbolic; embedded: Symbolic; logits: (x: Symbolic) => Symbolic} {
    const {vocabSize, inputDim, dModel, head, tieEmbeddings, maskZero} = this.o;
    if (vocabSize === undefined) {
      const input = tfl.input({shape: [null, inputDim as number], name: 'vectors'});
      return {input, embedded: this.dense('input_projection', dModel, input), logits: (x) => this.headOf(x)};
    }
    const input = tfl.input({shape: [null], dtype: 'int32', name: 'ids'});
    const args = {
      name: 'token_embedding',
      inputDim: vocabSize,
      outputDim: dModel,
      embeddingsInitializer: this.normal(),
      maskZero,
    };
    if (head !== 'lm' || !tieEmbeddings) {
      const embedded = tfl.layers.embedding(args).apply(input) as Symbolic;
      return {input, embedded, logits: (x) => this.headOf(x)};
    }
    const tied = tiedEmbedding(args);
    return {input, embedded: tied.apply(input) as Symbolic, logits: (x) => tied.apply(x) as Symbolic};
  }

  private headOf(x: Symbolic): Symbolic {
    const {head, vocabSize, numClasses, pooling} = this.o;
    switch (head) {
      case 'lm':
        return this.dense('head', vocabSize as number, x);
      case 'classifier':
        return this.dense(
          'classifier',
          numClasses as number,
          sequencePooling({name: 'pooling', pooling}).apply(x) as Symbolic,
        );
      case 'none':
        return x;
    }
  }

  position(x: Symbolic): Symbolic {
    const {position: kind, maxLength} = this.o;
    if (kind === 'rotary' || kind === 'none') {
      return x;
    }
    // Positions start as long as token embeddings: the sines of Vaswani et al. would drown those.
    const args =
      kind === 'learned'
        ? {maxLength, embeddingsInitializer: this.normal()}
        : {amplitude: Math.sqrt(2 / this.o.dModel)};
    return positionEmbedding({name: 'position_embedding', kind, ...args}).apply(x) as Symbolic;
  }

  norm(name: string, x: Symbolic): Symbolic {
    return layerNorm({name, epsilon: this.o.layerNormEpsilon}).apply(x) as Symbolic;
  }

  drop(name: string, x: Symbolic): Symbolic {
    const rate = this.o.dropout;
    return rate === 0 ? x : (seededDropout({name, rate, seed: this.seed()}).apply(x) as Symbolic);
  }

  /** x + drop(f(norm(x))) */
  residual(name: string, x: Symbolic, f: (x: Symbolic) => Symbolic): Symbolic {
    const change = this.drop(`${name}_dropout`, f(this.norm(`${name}_norm`, x)));
    return tfl.layers.add({name: `${name}_residual`}).apply([x, change]) as Symbolic;
  }

  attention(name: string, kind: 'linear' | 'softmax', x: Symbolic): Symbolic {
    const {dModel, numHeads, causal, position, dropout, featureMap} = this.o;
    const args = {
      name,
      numHeads,
      keyDim: dModel / numHeads,
      causal,
      dropout,
      rotary: position === 'rotary' ? ('input' as const) : (false as const),
      seed: this.seed(),
    };
    const layer =
      kind === 'softmax'
        ? softmaxAttention(args)
        : linearAttention({...args, ...(featureMap === undefined ? {} : {featureMap})});
    const made = layer.apply(x) as Symbolic;
    const kernel = layer.weights.find(({originalName}) => originalName.endsWith('output_kernel'));
    tf.tidy(() => {
      kernel?.write(tf.mul(kernel.read(), Math.sqrt(this.residualScale)));
    });
    return made;
  }

  feedForward(name: string, x: Symbolic): Symbolic {
    const {dModel, ffnDim, activation} = this.o;
    const inner = this.dense(`${name}_in`, ffnDim, x);
    const layer =
      activation === 'relu'
        ? tfl.layers.activation({name: `${name}_activation`, activation: 'relu'})
        : gelu({name: `${name}_activation`, approximate: activation === 'gelu' ? 'none' : 'tanh'});
    return this.dense(`${name}_out`, dModel, layer.apply(inner) as Symbolic, this.residualScale);
  }

  /** Glorot's uniform initialisation, its variance times `scale`. */
  private dense(name: string, units: number, x: Symbolic, scale = 1): Symbolic {
    const kernelInitializer = tfl.initializers.varianceScaling({
      ...{scale, mode: 'fanAvg' as const, distribution: 'uniform' as const},
      seed: this.seed(),
    });
    return tfl.layers.dense({name, units, kernelInitializer}).apply(x) as Symbolic;
  }

  /**
   * Embeddings must not be small beside what the blocks add, or the first norms see nothing of the token: at 0.02 (the
   * number of GPT-2, whose kernels are as small) a two-layer character model was 0.4 bits behind after 200 steps.
   */
  private normal() {
    return tfl.initializers.randomNormal({mean: 0, stddev: this.o.dModel ** -0.5, seed: this.seed()});
  }

  /** The 2 numLayers changes that are added up start with variances that add up to one (GPT-2, section 2.3). */
  private get residualScale(): number {
    return 1 / (2 * this.o.numLayers);
  }

  /** Never 0, which tfjs takes for no seed; the attention layers add small numbers to theirs. */
  private seed(): number {
    return 1 + (mixSeed(this.o.seed, this.seeds++) >>> 1);
  }
}
