/**
 * Which mask a layer may believe. tfjs keeps one kwargs object for a whole run of a functional model: a mask that one
 * layer was given is handed on to every later layer, also past layers that drop masks, and a layer of several inputs
 * is given only the first input's. So a mask that arrives from tfjs is used only where the graph can carry one. A nested
 * model's graph begins at its own inputs, which carry none: there a mask has to be an input of the nested model.
 */
import * as tf from '@tensorflow/tfjs-core';
import type * as tfl from '@tensorflow/tfjs-layers';
import {isNonZero} from '../src/conditions';
import {shapeOf} from '../src/convert';
import {check, showShape} from '../src/errors';

type Mask = tf.Tensor | null | undefined;

/** Stock layers that pass masks on and never make one, though they have a computeMask of their own. */
const PASS_ON = [
  'Add',
  'Average',
  'Concatenate',
  'Maximum',
  'Minimum',
  'Multiply',
  'Bidirectional',
  'TimeDistributed',
];
/** Stock layers that pass masks on only when they return the whole sequence. */
const RECURRENT = ['RNN', 'SimpleRNN', 'GRU', 'LSTM', 'ConvLSTM2D', 'Bidirectional'];

const answers = new WeakMap<tfl.SymbolicTensor, boolean>();

/** True when a mask can arrive with this symbolic tensor. */
export function canCarryMask(tensor: tfl.SymbolicTensor): boolean {
  let answer = answers.get(tensor);
  if (answer === undefined) {
    answer = computeCanCarry(tensor);
    answers.set(tensor, answer);
  }
  return answer;
}

function computeCanCarry(tensor: tfl.SymbolicTensor): boolean {
  const layer = tensor.sourceLayer;
  if (!layer?.supportsMasking) {
    return false; // an input, or a layer that drops masks
  }
  const className = layer.getClassName();
  if (className === 'Embedding' || className === 'Masking') {
    return true; // Embedding supports masking only when maskZero is set
  }
  if (className === 'Dot') {
    return false;
  }
  if (RECURRENT.includes(className) && !(layer as {returnSequences?: boolean}).returnSequences) {
    return false;
  }
  if (tensor.inputs.some(canCarryMask)) {
    return true;
  }
  // An unknown class with its own computeMask may make a mask out of its input's values.
  const own = layer.computeMask !== basePrototype(layer)?.computeMask;
  const known = PASS_ON.includes(className) || RECURRENT.includes(className);
  const passesOn = (layer.constructor as {passesMaskOn?: boolean}).passesMaskOn === true;
  return own && !known && !passesOn;
}

/** The prototype of tfjs's Layer: the last one in the chain that has computeMask. */
function basePrototype(layer: object): tfl.layers.Layer | null {
  let found: object | null = null;
  for (let at = Object.getPrototypeOf(layer); at !== null; at = Object.getPrototypeOf(at)) {
    if (Object.hasOwn(at, 'computeMask')) found = at;
  }
  return found as tfl.layers.Layer | null;
}

/**
 * The masks of a call that belong to its inputs, by position.
 *
 * Several inputs: an array of masks is the caller's own and is believed; a single mask comes from tfjs and is the first
 * input's or stale. One input: a mask is believed when the layer is called directly, and in a functional model where
 * the graph can carry one.
 */
export function believedMasks(
  fn: string,
  inputs: tf.Tensor | tf.Tensor[],
  given: Mask | Mask[],
  nodes: readonly GraphNode[],
): Mask[] {
  if (Array.isArray(inputs) && inputs.length > 1) {
    if (!Array.isArray(given)) {
      return [];
    }
    check(
      given.length === inputs.length || given.length === Math.min(inputs.length, 3),
      fn,
      () => `expected one mask (or null) per input; got ${given.length} for ${inputs.length} inputs.`,
    );
    return given;
  }
  const mask = Array.isArray(given) ? given[0] : given;
  if (mask === null || mask === undefined) {
    return [];
  }
  // A functional model passes an array of inputs; whoever calls the layer directly usually passes a tensor.
  const direct = !Array.isArray(inputs) || nodes.length === 0;
  return direct || canReceiveMask(fn, nodes) ? [mask] : [];
}

interface GraphNode {
  inputTensors: tfl.SymbolicTensor[];
}

function canReceiveMask(fn: string, nodes: readonly GraphNode[]): boolean {
  const single = nodes.filter((node) => node.inputTensors.length === 1);
  const answers = new Set(single.map((node) => canCarryMask(node.inputTensors[0])));
  check(
    answers.size < 2,
    fn,
    () =>
      'the layer is applied in several places, some of which a mask can reach and some not, and tfjs does not say which of them runs; pass the mask as a further input, [x, mask].',
  );
  return answers.has(true);
}

/**
 * The key mask of a call: the AND of the value's mask, the key's mask and the mask input; null when there is none.
 * Throws on a mask that is not [B,Nk]. Query masks are not looked at. Call it inside a tidy.
 */
export function keyMask(
  fn: string,
  masks: {value: Mask; key: Mask; input: Mask},
  batch: number,
  length: number,
): tf.Tensor2D | null {
  const found: tf.Tensor2D[] = [];
  // One mask may arrive in two parts: attention of a sequence to itself.
  for (const mask of new Set([masks.value, masks.key, masks.input])) {
    if (mask !== null && mask !== undefined) {
      found.push(asKeyMask(fn, mask, batch, length));
    }
  }
  if (found.length < 2) {
    return found[0] ?? null;
  }
  return found.map((mask) => isNonZero(mask) as tf.Tensor2D).reduce((a, b) => tf.logicalAnd(a, b));
}

function asKeyMask(fn: string, mask: tf.Tensor, batch: number, length: number): tf.Tensor2D {
  const shape = shapeOf(fn, 'the mask', mask);
  // tfjs's merge layers hand on [B,N] masks as [1,B,N].
  const tail = shape.slice(-2);
  const leading = shape.slice(0, -2);
  check(
    tail[0] === batch && tail[1] === length && leading.every((n) => n === 1),
    fn,
    () =>
      `expected the mask's shape to be [batch, key length] ${showShape([batch, length])}; got ${showShape(shape)}.`,
  );
  const made = mask instanceof tf.Tensor ? mask : tf.tensor(mask as tf.TensorLike);
  return tf.reshape(made, [batch, length]);
}
