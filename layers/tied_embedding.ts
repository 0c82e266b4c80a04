import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {layers} from '@tensorflow/tfjs-layers';
import {check, checkBoolean, checkInteger, showShape} from '../src/errors';
import {uncountUse} from '../src/tfjs';
import {type Identifier, type Initializer, resolve, serialize} from './identifiers';
import {checkLayerArgs, type LayerArgs} from './layer_args';
import {smallNormal} from './small_normal';

type Shape = (number | null)[];

/** Arguments of TiedEmbedding. */
export type TiedEmbeddingArgs = LayerArgs & {
  /** V, the number of ids. */
  inputDim: number;
  /** D, the size of an embedding. */
  outputDim: number;
  /** Default: normal with standard deviation 0.02, seeded by the layer's name. */
  embeddingsInitializer?: Identifier<Initializer>;
  /** Id 0 is padding: called on ids, the layer makes the mask `ids != 0`. Default false. */
  maskZero?: boolean;
};

const OWN = ['inputDim', 'outputDim', 'embeddingsInitializer', 'maskZero'];

/** Up to this many rows, logits are E x^T: no copy of the table. */
const FEW_ROWS = 8;

/**
 * One table E [V,D] as the input embedding and the output projection of a language model (Press and Wolf 2017,
 * https://arxiv.org/abs/1608.05859): the same layer is applied twice.
 *
 * - ids [B,T] give embeddings [B,T,D], rows of E.
 * - activations [B,T,D] give logits [B,T,V] = x E^T, without a bias.
 *
 * Weight: embeddings [V,D].
 *
 * ```js
 * const embedding = layers.tiedEmbedding({inputDim: 100, outputDim: 32});
 * const ids = tf.input({shape: [null], dtype: 'int32'});
 * const embedded = embedding.apply(ids);
 * const logits = embedding.apply(layers.layerNorm().apply(embedded)); // a model's blocks stand between the two
 * ```
 */
export class TiedEmbedding extends layers.Layer {
  static className = 'TiedEmbedding';
  /** Acts on each position alone: streams may run it token by token. */
  static timewise = true;
  readonly inputDim: number;
  readonly outputDim: number;
  readonly maskZero: boolean;
  private readonly embeddingsInitializer: Initializer;
  private embeddings: tfl.LayerVariable | null = null;

  constructor(args: TiedEmbeddingArgs) {
    super(args);
    this.inputDim = args.inputDim;
    this.outputDim = args.outputDim;
    this.maskZero = args.maskZero ?? false;
    this.supportsMasking = this.maskZero;
    this.embeddingsInitializer = resolve(
      'layers.tiedEmbedding',
      'embeddingsInitializer',
      'initializer',
      args.embeddingsInitializer ?? smallNormal(this.name),
    )!;
  }

  /** Ids and activations are two uses by one model, which disposes the layer once. */
  override apply(...args: Parameters<layers.Layer['apply']>): ReturnType<layers.Layer['apply']> {
    const result = super.apply(...args);
    const x = Array.isArray(args[0]) ? args[0][0] : args[0];
    if (!(x instanceof tf.Tensor) && x.shape.length === 3) {
      uncountUse(this);
    }
    return result;
  }

  override build(): void {
    this.embeddings = this.addWeight(
      'embeddings',
      [this.inputDim, this.outputDim],
      'float32',
      this.embeddingsInitializer,
    );
    this.built = true;
  }

  override computeOutputShape(inputShape: Shape | Shape[]): Shape {
    const shape = (Array.isArray(inputShape[0]) ? inputShape[0] : inputShape) as Shape;
    if (shape.length === 2) {
      return [...shape, this.outputDim];
    }
    check(
      shape.length === 3 && shape[2] === this.outputDim,
      `TiedEmbedding '${this.name}'`,
      () =>
        `expected ids [B,T] or activations [B,T,${this.outputDim}]; got an input of shape ${showShape(shape)}.`,
    );
    return [shape[0], shape[1], this.inputDim];
  }

  override computeMask(inputs: tf.Tensor | tf.Tensor[], mask?: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0] : inputs;
    const given = Array.isArray(mask) ? mask[0] : mask;
    if (x.shape.length !== 2) {
      return (given ?? null) as tf.Tensor;
    }
    // Asked about symbolic inputs too, which have no values.
    return (this.maskZero && x instanceof tf.Tensor ? tf.tidy(() => tf.notEqual(x, 0)) : null) as tf.Tensor;
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    return tf.tidy(() => {
      const x = Array.isArray(inputs) ? inputs[0] : inputs;
      const shape = this.computeOutputShape(x.shape) as number[];
      const table = this.embeddings!.read() as tf.Tensor2D;
      if (x.rank === 2) {
        const ids = tf.reshape(x.dtype === 'int32' ? x : tf.cast(x, 'int32'), [x.size]);
        return tf.reshape(tf.gather(table, ids), shape);
      }
      const rows = tf.reshape(x, [-1, this.outputDim]) as tf.Tensor2D; // [B*T, D]
      const logits =
        rows.shape[0] <= FEW_ROWS
          ? tf.transpose(tf.matMul(table, tf.transpose(rows)))
          : tf.matMul(rows, tf.transpose(table));
      return tf.reshape(logits, shape);
    });
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {
      ...super.getConfig(),
      inputDim: this.inputDim,
      outputDim: this.outputDim,
      embeddingsInitializer: serialize(this.embeddingsInitializer),
      maskZero: this.maskZero,
    };
  }
}
tf.serialization.registerClass(TiedEmbedding);

/**
 * Creates a {@link TiedEmbedding}.
 *
 * ```js
 * const layer = tfla.layers.tiedEmbedding({inputDim: 100, outputDim: 32});
 * console.log(layer.apply(tf.tensor2d([[3, 1]], [1, 2], 'int32')).shape); // [1, 2, 32]
 * ```
 *
 * @throws Error for unknown arguments, and sizes that are no whole numbers of at least 1.
 */
export function tiedEmbedding(args: TiedEmbeddingArgs): TiedEmbedding {
  const fn = 'layers.tiedEmbedding';
  checkLayerArgs(fn, args ?? null, OWN);
  checkInteger(fn, 'inputDim', args.inputDim);
  checkInteger(fn, 'outputDim', args.outputDim);
  if (args.maskZero !== undefined) {
    checkBoolean(fn, 'maskZero', args.maskZero);
  }
  return new TiedEmbedding(args);
}
