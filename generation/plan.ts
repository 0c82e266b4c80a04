/**
 * A functional model's graph as a flat list of steps, made once, so that a token costs nothing but the layers' own
 * work. Nested models are written out in place; a layer that is applied twice has two steps, each with its own state.
 */
import type * as tfl from '@tensorflow/tfjs-layers';
import {otherCopyOf} from '../layers/copies';
import type {StreamingLayer} from '../layers/streaming';
import {check, fail, show, showShape} from '../src/errors';
import {graphCall, innerGraph} from '../src/tfjs';
import {embeddingOf, kindOf, type LayerKind} from './layer_kinds';

/** Reads slots, runs a layer, writes slots. */
export interface Step {
  layer: tfl.layers.Layer;
  kind: LayerKind;
  inputs: number[];
  outputs: number[];
  /** Index of its state; -1 for layers without. */
  state: number;
  /** Slots that no later step reads. */
  release: number[];
}

export interface Plan {
  steps: Step[];
  /** The layers that have a state, by its index. */
  streaming: StreamingLayer[];
  slots: number;
  input: number;
  output: number;
  /** From this step on every layer is time-wise, so only the last position need be run. */
  tail: number;
  /** Slots that steps from `tail` on read and earlier ones wrote. */
  carried: number[];
  /** The model takes ids below this; null when it takes vectors, or ids through no embedding. */
  vocabSize: number | null;
  /** Size of the model's input vectors; null when it takes ids. */
  inputDim: number | null;
  /** Id 0 is padding. */
  maskZero: boolean;
  /** V: size of the model's output vectors. */
  outputDim: number;
}

/** Throws, naming the layer, when a part of the model cannot run token by token. Makes no tensors. */
export function planOf(fn: string, model: tfl.LayersModel): Plan {
  const graph = innerGraph(model);
  check(graph !== null, fn, () => `expected model to be a tf.LayersModel; got ${show(model)}.`);
  const copy = otherCopyOf(model);
  check(copy === null, fn, () => copy as string);
  const {inputs, outputs} = graph;
  check(
    inputs.length === 1 && outputs.length === 1,
    fn,
    () => `expected a model with one input and one output; got ${inputs.length} and ${outputs.length}.`,
  );
  const shape = inputs[0].shape as (number | null)[];
  check(
    shape.length === 2 || (shape.length === 3 && shape[2] !== null),
    fn,
    () => `expected a model whose input is ids [B,T] or vectors [B,T,D]; got ${showShape(shape)}.`,
  );
  const planner = new Planner(fn);
  const input = planner.slot();
  const output = planner.resolve(outputs[0], new Map([[inputs[0], input]]), '');
  const outputShape = outputs[0].shape as (number | null)[];
  const outputDim = outputShape[2];
  check(
    outputShape.length === 3 && typeof outputDim === 'number',
    fn,
    () => `expected a model whose output is [B,T,V]; got ${showShape(outputShape)}.`,
  );
  return planner.finish(input, output, shape.length === 3 ? shape[2] : null, outputDim);
}

class Planner {
  private readonly steps: Step[] = [];
  private readonly streaming: StreamingLayer[] = [];
  private slots = 0;

  constructor(private readonly fn: string) {}

  slot(): number {
    return this.slots++;
  }

  /** The slot of a tensor of the graph whose known tensors are `env`; plans what makes it. */
  resolve(tensor: tfl.SymbolicTensor, env: Map<tfl.SymbolicTensor, number>, path: string): number {
    const known = env.get(tensor);
    if (known !== undefined) {
      return known;
    }
    const {layer, inputs, outputs} = graphCall(tensor);
    const name = path + layer.name;
    check(inputs.length > 0, this.fn, () => `layer '${name}' is an input that the model does not list.`);
    const from = inputs.map((input) => this.resolve(input, env, path));
    const inner = innerGraph(layer);
    if (inner !== null) {
      const innerEnv = new Map(inner.inputs.map((input, i) => [input, from[i]]));
      inner.outputs.forEach((output, i) => {
        env.set(outputs[i], this.resolve(output, innerEnv, `${name}/`));
      });
    } else {
      this.plan(layer, name, inputs, from, outputs, env);
    }
    return env.get(tensor) as number;
  }

  private plan(
    layer: tfl.layers.Layer,
    name: string,
    symbolic: tfl.SymbolicTensor[],
    inputs: number[],
    made: tfl.SymbolicTensor[],
    env: Map<tfl.SymbolicTensor, number>,
  ): void {
    const kind = kindOf(layer, symbolic);
    if (typeof kind === 'string') {
      fail(
        this.fn,
        `layer '${name}' (${layer.getClassName()}) cannot run token by token: ${kind.replace(/\.$/, '')}.`,
      );
    }
    const outputs = made.map((output) => {
      const slot = this.slot();
      env.set(output, slot);
      return slot;
    });
    const state = kind.kind === 'streaming' ? this.streaming.push(kind.layer) - 1 : -1;
    this.steps.push({layer, kind, inputs, outputs, state, release: []});
  }

  finish(input: number, output: number, inputDim: number | null, outputDim: number): Plan {
    const {steps, streaming, slots} = this;
    const lastRead = new Map<number, number>();
    steps.forEach((step, index) => {
      for (const slot of step.inputs) {
        lastRead.set(slot, index);
      }
    });
    for (const [slot, index] of lastRead) {
      if (slot !== input && slot !== output) {
        steps[index].release.push(slot);
      }
    }
    const tail = steps.reduce((after, step, index) => (step.state >= 0 ? index + 1 : after), 0);
    const madeBefore = new Set([input, ...steps.slice(0, tail).flatMap((step) => step.outputs)]);
    const carried = [...new Set([...steps.slice(tail).flatMap((step) => step.inputs), output])].filter(
      (slot) => madeBefore.has(slot),
    );
    const embeddings = steps
      .filter((step) => step.inputs.includes(input))
      .map(({layer}) => (inputDim === null ? embeddingOf(layer) : null))
      .filter((embedding) => embedding !== null);
    return {
      ...{steps, streaming, slots, input, output, tail, carried, inputDim, outputDim},
      vocabSize: embeddings.length === 0 ? null : Math.min(...embeddings.map(({vocabSize}) => vocabSize)),
      maskZero: embeddings.some(({maskZero}) => maskZero),
    };
  }
}
