/**
 * What is private in tfjs-layers: the graph, the counts of uses, the shapes of targets. The part of src/tfjs.ts that is
 * about layers; the same rules hold.
 */
import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';

/**
 * Lets a compiled model take targets with one dimension less than its output, [B,T] against [B,T,V]. tfjs compares the
 * targets' shape with this private field before it calls the loss. Targets [B] come to it as [B,1].
 */
export function relaxTargets(model: object): void {
  interface Fields {
    feedOutputShapes?: (number | null)[][];
    /** What a Sequential hands fit and evaluate on to. */
    model?: Fields;
  }
  const fields = (model as Fields).model ?? (model as Fields);
  if (!Array.isArray(fields.feedOutputShapes)) {
    throw new Error('training.compile: this version of tfjs-layers keeps the target shapes elsewhere.');
  }
  fields.feedOutputShapes = fields.feedOutputShapes.map((shape) =>
    shape.length === 2 ? [null, 1] : shape.slice(0, -1).map(() => null),
  );
}

/** The variables behind a model's trainable weights, each once, in the model's order. */
export function trainableVariables(model: {trainableWeights: {read(): tf.Tensor}[]}): tf.Variable[] {
  return [...new Set(model.trainableWeights.map((weight) => weight.read() as tf.Variable))];
}

/** The variable that an optimizer's named gradient belongs to. */
export function registeredVariable(name: string): tf.Variable | undefined {
  return tf.engine().registeredVariables[name];
}

type AnyLayer = tfl.layers.Layer;

/** One application of a layer in a functional model's graph. */
export interface GraphCall {
  layer: AnyLayer;
  inputs: tfl.SymbolicTensor[];
  outputs: tfl.SymbolicTensor[];
}

/** The application that made a symbolic tensor; no inputs where it is a model's input. */
export function graphCall(tensor: tfl.SymbolicTensor): GraphCall {
  const {sourceLayer: layer, nodeIndex} = tensor;
  const node = layer?.inboundNodes?.[nodeIndex];
  if (node === undefined || !Array.isArray(node.inputTensors) || !Array.isArray(node.outputTensors)) {
    throw new Error(`this version of tfjs-layers keeps the graph of '${tensor.name}' elsewhere.`);
  }
  const isInput = layer.getClassName() === 'InputLayer';
  return {layer, inputs: isInput ? [] : node.inputTensors, outputs: node.outputTensors};
}

/** All layers of a model, those of nested models in the nested model's place. */
export function flatLayers({layers}: {layers: AnyLayer[]}): AnyLayer[] {
  return layers.flatMap((layer) =>
    innerGraph(layer) === null ? [layer] : flatLayers(layer as tfl.LayersModel),
  );
}

/** The inputs and outputs of a model that was built, which a layer in another model's graph may be; else null. */
export function innerGraph(
  layer: unknown,
): {inputs: tfl.SymbolicTensor[]; outputs: tfl.SymbolicTensor[]} | null {
  const {inputs, outputs, layers} = (layer ?? {}) as Partial<tfl.LayersModel>;
  return Array.isArray(inputs) && Array.isArray(outputs) && Array.isArray(layers) ? {inputs, outputs} : null;
}

/**
 * Takes back the count of a layer's last symbolic use. tfjs counts the uses of a layer, but disposing a model
 * discounts one use only, so the weights of a layer that one model uses twice would never be freed.
 */
export function uncountUse(layer: tfl.layers.Layer): void {
  const fields = layer as unknown as {_refCount?: number | null};
  if (typeof fields._refCount === 'number' && fields._refCount > 1) {
    fields._refCount--;
  }
}

/**
 * Calls f, which must do its work before it returns, and frees the tensors it left. `discard` disposes the variables
 * that it made: a layer's weights belong to the layer, and nobody holds those of a model whose building failed.
 */
export function collectVariables<T>(f: () => T): {result: T; discard: () => void} {
  const engine = tf.engine();
  const before = new Set(Object.values(engine.registeredVariables));
  let made: tf.Variable[] = [];
  const discard = () => {
    for (const variable of made) {
      variable.dispose();
    }
  };
  engine.startScope('collectVariables');
  try {
    return {result: f(), discard};
  } finally {
    engine.endScope();
    made = Object.values(engine.registeredVariables).filter((variable) => !before.has(variable));
  }
}

/**
 * Calls f, in which models of that class are made of their config with zeros for weights: drawing first values takes
 * long, and those of a saved model are overwritten. tfjs does so in loadLayersModel alone.
 */
export function withZeroWeights<T>(className: unknown, f: () => T): T {
  type Entry = [unknown, (cls: unknown, config: unknown, customObjects: unknown, zeros?: boolean) => unknown];
  const {classNameMap} = tf.serialization.SerializationMap.getMap();
  const map = classNameMap as unknown as {[className: string]: Entry | undefined};
  const entry = typeof className === 'string' && Object.hasOwn(map, className) ? map[className] : undefined;
  if (entry === undefined) {
    return f();
  }
  const [cls, fromConfig] = entry;
  map[className as string] = [cls, (...[of, config, custom]) => fromConfig(of, config, custom, true)];
  try {
    return f();
  } finally {
    map[className as string] = entry;
  }
}
