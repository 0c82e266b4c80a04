import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {layers} from '@tensorflow/tfjs-layers';
import {check, checkInteger, checkNumber, checkOneOf, fail, showShape} from '../src/errors';
import {sinusoids} from '../src/sinusoids';
import {type Identifier, type Initializer, resolve, serialize} from './identifiers';
import {checkLayerArgs, type LayerArgs} from './layer_args';
import {smallNormal} from './small_normal';

type Shape = (number | null)[];

/** Arguments of PositionEmbedding. */
export type PositionEmbeddingArgs = LayerArgs & {
  /** 'learned': a trainable row per position. 'sinusoidal': fixed sines and cosines. */
  kind: 'learned' | 'sinusoidal';
  /** Number of positions; needed by 'learned', no limit without it. */
  maxLength?: number;
  /** Of 'learned'. Default: normal with standard deviation 0.02, seeded by the layer's name. */
  embeddingsInitializer?: Identifier<Initializer>;
  /**
   * Of 'sinusoidal': what the sines are multiplied by. Default 1. A row then has length sqrt(D / 2), which drowns
   * token embeddings of length about 1; sqrt(2 / D) makes both the same length.
   */
  amplitude?: number;
};

const OWN = ['kind', 'maxLength', 'embeddingsInitializer', 'amplitude'];

/**
 * Adds to each position its embedding: [B,T,D] gives [B,T,D], positions 0 .. T-1.
 *
 * 'learned' has the weight embeddings [maxLength,D]. 'sinusoidal' is that of Vaswani et al. 2017
 * (https://arxiv.org/abs/1706.03762, section 3.5): sin(p / 10000^(2i/D)) in column 2i, the cosine in column 2i + 1.
 *
 * ```js
 * const layer = layers.positionEmbedding({kind: 'learned', maxLength: 128});
 * ```
 *
 * @throws when an input is longer than maxLength.
 */
export class PositionEmbedding extends layers.Layer {
  static className = 'PositionEmbedding';
  /** Acts on each position alone; a stream says which by `callAt`. */
  static timewise = true;
  readonly kind: 'learned' | 'sinusoidal';
  readonly maxLength: number | null;
  readonly amplitude: number;
  private readonly embeddingsInitializer: Initializer;
  private embeddings: tfl.LayerVariable | null = null;

  constructor(args: PositionEmbeddingArgs) {
    super(args);
    this.kind = args.kind;
    this.maxLength = args.maxLength ?? null;
    this.amplitude = args.amplitude ?? 1;
    this.supportsMasking = true;
    this.embeddingsInitializer = resolve(
      'layers.positionEmbedding',
      'embeddingsInitializer',
      'initializer',
      args.embeddingsInitializer ?? smallNormal(this.name),
    )!;
  }

  override build(inputShape: Shape | Shape[]): void {
    const shape = (Array.isArray(inputShape[0]) ? inputShape[0] : inputShape) as Shape;
    const size = shape[shape.length - 1];
    check(
      shape.length === 3 && size !== null,
      `PositionEmbedding '${this.name}'`,
      () => `expected an input [B,T,D] with a known D; got ${showShape(shape)}.`,
    );
    if (this.kind === 'learned') {
      this.embeddings = this.addWeight(
        'embeddings',
        [this.maxLength, size],
        'float32',
        this.embeddingsInitializer,
      );
    }
    this.built = true;
  }

  override computeOutputShape(inputShape: Shape): Shape {
    return inputShape;
  }

  override call(inputs: tf.Tensor | tf.Tensor[]): tf.Tensor {
    const x = Array.isArray(inputs) ? inputs[0] : inputs;
    const [, length, size] = x.shape;
    if (this.embeddings === null) {
      return this.callAt(x, 0);
    }
    this.checkPosition(length - 1);
    return tf.tidy(() => {
      const table = (this.embeddings as tfl.LayerVariable).read();
      // Unlike gather's, the gradient of slice has kernels on every backend.
      return tf.add(x, length === this.maxLength ? table : tf.slice(table, [0, 0], [length, size]));
    });
  }

  /** `call` for a part of a sequence: the position of its first token, or of each of its B*T tokens, row by row. */
  callAt(x: tf.Tensor, positions: number | Int32Array): tf.Tensor {
    const [, length, size] = x.shape;
    const places =
      typeof positions === 'number' ? Int32Array.from({length}, (_, t) => positions + t) : positions;
    this.checkPosition(places.reduce((a, b) => Math.max(a, b), 0));
    return tf.tidy(() => {
      const rows =
        this.embeddings === null
          ? tf.tensor2d(sinusoids(places, size, this.amplitude), [places.length, size])
          : tf.gather(this.embeddings.read(), tf.tensor1d(places, 'int32'));
      return tf.add(x, typeof positions === 'number' ? rows : tf.reshape(rows, x.shape));
    });
  }

  private checkPosition(position: number): void {
    if (this.maxLength !== null && position >= this.maxLength) {
      fail(
        `PositionEmbedding '${this.name}'`,
        `position ${position} is past maxLength (${this.maxLength}); make the model with a larger maxLength or shorten the input.`,
      );
    }
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {
      ...super.getConfig(),
      kind: this.kind,
      ...(this.maxLength === null ? {} : {maxLength: this.maxLength}),
      embeddingsInitializer: serialize(this.embeddingsInitializer),
      amplitude: this.amplitude,
    };
  }
}
tf.serialization.registerClass(PositionEmbedding);

/**
 * Creates a {@link PositionEmbedding}.
 *
 * ```js
 * const layer = tfla.layers.positionEmbedding({kind: 'sinusoidal'});
 * layer.apply(tf.zeros([1, 2, 4])).print(); // [[[0, 1, 0, 1], [0.8414709, 0.5403023, 0.0099998, 0.99995]]]
 * ```
 *
 * @throws Error for unknown arguments, and for 'learned' without maxLength.
 */
export function positionEmbedding(args: PositionEmbeddingArgs): PositionEmbedding {
  const fn = 'layers.positionEmbedding';
  checkLayerArgs(fn, args ?? null, OWN);
  checkOneOf(fn, 'kind', args.kind, ['learned', 'sinusoidal']);
  if (args.maxLength !== undefined) {
    checkInteger(fn, 'maxLength', args.maxLength);
  }
  if (args.amplitude !== undefined) {
    checkNumber(fn, 'amplitude', args.amplitude, {min: 0, exclusive: true});
  }
  check(
    args.kind !== 'learned' || args.maxLength !== undefined,
    fn,
    () => "expected maxLength, which kind 'learned' needs; got none.",
  );
  return new PositionEmbedding(args);
}
