/**
 * What linear and softmax attention layers share: four projections with Keras MultiHeadAttention's weights, inputs,
 * masks, shapes, configuration. A subclass says how queries, keys and values, [B,N,H,.], become an output [B,N,H,d].
 */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {shapeOf, toFloat} from '../src/convert';
import {type DropoutStream, dropout} from '../src/dropout';
import {check, fail, show, showShape} from '../src/errors';
import {seedOfName} from '../src/random';
import {rotate} from '../src/rotary';
import {type AttentionArgs, type AttentionOptions, checkCallArgs, configOf, parseArgs} from './args';
import {otherCopyOf} from './copies';
import {reseeded} from './identifiers';
import {checkFeatures, checkShapes, rolesOf, type Shape, toList, withoutRepeats} from './inputs';
import {believedMasks, keyMask} from './masks';
import {MatrixConstraint, MatrixInitializer} from './matrix_view';
import {projectIntoHeads, projectOut} from './projection';
import {checkStreamCall, type StreamContext, type StreamResult, type StreamState} from './streaming';

type Variable = tfl.LayerVariable;
type Inputs = tf.Tensor | tf.Tensor[] | tfl.SymbolicTensor | tfl.SymbolicTensor[];
type Kwargs = NonNullable<Parameters<tfl.layers.Layer['call']>[1]>;

/** Projected tensors, [B,N,H,.]. */
export interface Heads {
  q: tf.Tensor4D;
  k: tf.Tensor4D;
  v: tf.Tensor4D;
}

export interface CallContext {
  mask: tf.Tensor2D | undefined;
  training: boolean;
}

interface Projection {
  kernel: Variable;
  bias: Variable | null;
}

export abstract class AttentionLayer extends tfl.layers.Layer {
  /** computeMask hands masks on and makes none (masks.ts). */
  static passesMaskOn = true;
  /** The layer's arguments with their defaults filled in. */
  readonly options: AttentionOptions;
  /** Draws the dropout masks; training sets the seed per step (`withDropoutSeed`). */
  protected readonly dropoutStream: DropoutStream;
  private projections: {query: Projection; key: Projection; value: Projection; output: Projection} | null =
    null;
  /** Numbers of features that the kernels were made for. */
  private features = {query: 0, value: 0, key: 0};

  constructor(
    fn: string,
    args: AttentionArgs,
    extra: readonly string[],
    rotaryForms: readonly ('input' | 'numerator')[],
  ) {
    const options = parseArgs(fn, args, extra, rotaryForms);
    super(args);
    this.options = options;
    this.supportsMasking = true;
    this.dropoutStream = {seed: options.seed ?? seedOfName(this.name), calls: 0};
  }

  /** Attention of projected heads, not streaming. */
  protected abstract attend(heads: Heads, context: CallContext): tf.Tensor4D;

  /** Attention of a few new tokens, and the state after them. */
  protected abstract attendStream(
    heads: Heads,
    state: StreamState,
    context: StreamContext,
  ): {output: tf.Tensor4D; state: StreamState};

  abstract streamState(batchSize: number): StreamState;

  /** Weights beyond the projections. */
  protected buildMore(): void {}

  /** `LinearAttention 'name'`, for messages. */
  protected get fn(): string {
    return `${this.getClassName()} '${this.name}'`;
  }

  override apply(inputs: Inputs, kwargs?: Kwargs): ReturnType<tfl.layers.Layer['apply']> {
    const list = toList<tf.Tensor | tfl.SymbolicTensor>(inputs);
    for (const x of list) {
      check(
        x instanceof tf.Tensor || x instanceof tfl.SymbolicTensor,
        this.fn,
        () => otherCopyOf(x) ?? `expected tensors; got ${show(x)}.`,
      );
    }
    checkCallArgs(this.fn, kwargs);
    check(
      !(list[0] instanceof tfl.SymbolicTensor) || (kwargs?.['mask'] ?? null) === null,
      this.fn,
      () =>
        'tfjs drops a mask given to a symbolic call; pass it as a further input instead, [query, value, key, mask].',
    );
    if (!(list[0] instanceof tfl.SymbolicTensor)) {
      return super.apply(inputs, kwargs);
    }
    const distinct = withoutRepeats(this.fn, list as tfl.SymbolicTensor[]);
    return super.apply(distinct.length === 1 ? distinct[0] : distinct, kwargs);
  }

  override build(inputShape: Shape | Shape[]): void {
    const shapes = shapeList(inputShape);
    const roles = rolesOf(this.fn, shapes);
    for (const name of ['query', 'value', 'key'] as const) {
      const dim = shapes[roles[name]][2];
      check(
        dim !== null && dim > 0,
        this.fn,
        () =>
          `expected the last dimension of ${name} to be known; got shape ${showShape(shapes[roles[name]])}.`,
      );
      this.features[name] = dim;
    }
    const {numHeads: H, keyDim: r, valueDim: d} = this.options;
    const O = this.options.outputDim ?? this.features.query;
    const {query, key, value} = this.features;
    // The order of the statements is the order of the weights.
    this.projections = {
      query: this.addProjection('query', 0, [query, H, r], [H, r], [query, H * r]),
      key: this.addProjection('key', 1, [key, H, r], [H, r], [key, H * r]),
      value: this.addProjection('value', 2, [value, H, d], [H, d], [value, H * d]),
      output: this.addProjection('output', 3, [H, d, O], [O], [H * d, O]),
    };
    this.buildMore();
    this.built = true;
  }

  private addProjection(
    name: string,
    index: number,
    shape: number[],
    biasShape: number[],
    matrix: [number, number],
  ): Projection {
    const o = this.options;
    const kernel = this.addWeight(
      `${name}_kernel`,
      shape,
      'float32',
      new MatrixInitializer(reseeded(o.kernelInitializer, index), matrix),
      o.kernelRegularizer ?? undefined,
      true,
      o.kernelConstraint === null ? undefined : new MatrixConstraint(o.kernelConstraint, matrix),
    );
    const bias = o.useBias
      ? this.addWeight(
          `${name}_bias`,
          biasShape,
          'float32',
          reseeded(o.biasInitializer, index),
          o.biasRegularizer ?? undefined,
          true,
          o.biasConstraint ?? undefined,
        )
      : null;
    return {kernel, bias};
  }

  override call(inputs: tf.Tensor | tf.Tensor[], kwargs: Kwargs): tf.Tensor {
    checkCallArgs(this.fn, kwargs);
    const list = toList(inputs);
    const shapes = list.map((x) => shapeOf(this.fn, 'the input', x));
    const roles = rolesOf(this.fn, shapes);
    checkShapes(this.fn, shapes, roles, this.options.causal);
    checkFeatures(this.fn, shapes, roles, this.features);
    return tf.tidy(() => {
      this.invokeCallHook(inputs, kwargs);
      const masks = believedMasks(this.fn, inputs, kwargs?.['mask'], this.inboundNodes);
      const [batch, length] = shapes[roles.key];
      const mask =
        keyMask(
          this.fn,
          {value: masks[roles.value], key: masks[roles.key], input: list[roles.mask]},
          batch,
          length,
        ) ?? undefined;
      const heads = this.project(list[roles.query], list[roles.value], list[roles.key]);
      const output = this.attend(heads, {mask, training: kwargs?.['training'] === true});
      return this.projectOut(output);
    });
  }

  /**
   * Queries, keys and values as attention compares them, [B,N,H,.]: projected, and turned where `rotary` is 'input'.
   * For looking at weights (`impliedAttention`) and for distillation. The caller disposes them.
   */
  heads(query: tf.Tensor, value: tf.Tensor = query, key: tf.Tensor = value): Heads {
    const [q, k, v] = tf.tidy(() => {
      const heads = this.rotateInput(this.project(query, value, key), 0);
      return [heads.q, heads.k, heads.v];
    });
    return {q, k, v};
  }

  private project(query: tf.Tensor, value: tf.Tensor, key: tf.Tensor): Heads {
    const into = ({kernel, bias}: Projection, x: tf.Tensor) =>
      projectIntoHeads(toFloat(x), kernel.read() as tf.Tensor3D, bias === null ? null : bias.read());
    const projections = this.builtProjections();
    return {
      q: into(projections.query, query),
      k: into(projections.key, key),
      v: into(projections.value, value),
    };
  }

  private projectOut(output: tf.Tensor4D): tf.Tensor3D {
    const {kernel, bias} = this.builtProjections().output;
    return projectOut(output, kernel.read() as tf.Tensor3D, bias === null ? null : bias.read());
  }

  private builtProjections() {
    return this.projections ?? fail(this.fn, 'the layer has no weights yet; apply it to an input first.');
  }

  /** Queries and keys turned by their positions, where `rotary` is 'input'. */
  protected rotateInput(heads: Heads, positions: number | Int32Array): Heads {
    if (this.options.rotary !== 'input') {
      return heads;
    }
    return {...heads, q: this.rotated(heads.q, positions), k: this.rotated(heads.k, positions)};
  }

  /** x [B,N,H,.] turned by its positions. */
  protected rotated(x: tf.Tensor4D, positions: number | Int32Array): tf.Tensor4D {
    const {rotaryBase, rotaryPairing} = this.options;
    return rotate(x, {positions, base: rotaryBase, pairing: rotaryPairing, dataFormat: 'BNHD'});
  }

  protected drop<T extends tf.Tensor>(x: T, training: boolean): T {
    return training && this.options.dropout > 0 ? dropout(x, this.options.dropout, this.dropoutStream) : x;
  }

  override computeOutputShape(inputShape: Shape | Shape[]): Shape {
    const shapes = shapeList(inputShape);
    const roles = rolesOf(this.fn, shapes);
    checkShapes(this.fn, shapes, roles, this.options.causal);
    const [batch, length, features] = shapes[roles.query];
    return [batch, length, this.options.outputDim ?? features];
  }

  /** The query's mask: masks mark tokens, and the output has the query's tokens. */
  override computeMask(
    _inputs: tf.Tensor | tf.Tensor[],
    mask?: tf.Tensor | tf.Tensor[],
  ): tf.Tensor | tf.Tensor[] {
    // tfjs's types leave no room for "no mask", which is null.
    return (Array.isArray(mask) ? mask[0] : mask) ?? (null as never);
  }

  override getConfig(): tf.serialization.ConfigDict {
    return {...super.getConfig(), ...configOf(this.options)};
  }

  /** Null when the layer can run token by token (`streamCall`), else the reason why not. */
  canStream(): string | null {
    if (!this.options.causal) {
      return `${this.fn} is not causal: its outputs depend on later tokens.`;
    }
    if (this.projections === null) {
      return `${this.fn} has no weights yet; apply it to an input first.`;
    }
    const selfOnly = this.inboundNodes.every(({inputTensors: [first, ...rest]}) =>
      rest.every((tensor) => tensor === first),
    );
    return selfOnly
      ? null
      : `${this.fn} has several inputs: only attention of one sequence to itself can run token by token.`;
  }

  /**
   * The next T tokens of a sequence, x [B,T,D] -> [B,T,outputDim], after those that `state` remembers. Without dropout.
   *
   * @throws When the layer cannot stream (`canStream`), or when x, state, positions or mask do not fit.
   */
  streamCall(x: tf.Tensor, state: StreamState, context: StreamContext): StreamResult {
    const fn = `${this.fn}.streamCall`;
    this.checkCanStream();
    checkStreamCall(fn, x, this.features.query, context);
    return tf.tidy(() => {
      const heads = this.project(x, x, x);
      const result = this.attendStream(heads, state, context);
      return {output: this.projectOut(result.output), state: result.state};
    });
  }

  /** Throws the reason why the layer cannot stream, if there is one. */
  protected checkCanStream(): void {
    const reason = this.canStream();
    if (reason !== null) {
      throw new Error(reason);
    }
  }
}

function shapeList(shape: Shape | Shape[]): Shape[] {
  return Array.isArray(shape[0]) ? (shape as Shape[]) : [shape as Shape];
}
