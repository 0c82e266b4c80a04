/** What an attention layer is called with: x | [query, value] | [query, value, key], and a mask as a last input. */
import type * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {check, showShape} from '../src/errors';

/** A shape of a tensor, or of a symbolic one, where null is a free dimension. */
export type Shape = (number | null)[];

/** Which of the inputs plays which part. `mask` is -1 when there is none. */
export interface Roles {
  query: number;
  value: number;
  key: number;
  mask: number;
}

/** Parts by number of inputs and ranks: a last input of rank 2 is the key mask [B,Nk]. */
export function rolesOf(fn: string, shapes: readonly Shape[]): Roles {
  const count = shapes.length;
  const hasMask = count > 1 && shapes[count - 1].length === 2;
  const tensors = hasMask ? count - 1 : count;
  const names = ['query', 'value', 'key'];
  check(
    tensors >= 1 && tensors <= 3,
    fn,
    () =>
      `expected x, [query, value] or [query, value, key], each [batch, length, features], and optionally a mask [batch, length] as the last; got ${count} inputs of shapes ${shapes.map(showShape).join(', ')}.`,
  );
  for (let i = 0; i < tensors; i++) {
    const name = tensors === 1 ? 'the input' : names[i];
    check(
      shapes[i].length === 3,
      fn,
      () => `expected ${name} to have rank 3, [batch, length, features]; got shape ${showShape(shapes[i])}.`,
    );
  }
  return {
    query: 0,
    value: tensors > 1 ? 1 : 0,
    key: tensors === 3 ? 2 : tensors === 2 ? 1 : 0,
    mask: hasMask ? count - 1 : -1,
  };
}

const agree = (a: number | null, b: number | null) => a === null || b === null || a === b;

/** Throws unless the shapes fit each other; free dimensions fit anything. */
export function checkShapes(fn: string, shapes: readonly Shape[], roles: Roles, causal: boolean): void {
  const query = shapes[roles.query];
  const value = shapes[roles.value];
  const key = shapes[roles.key];
  const all = () => `query ${showShape(query)}, value ${showShape(value)}, key ${showShape(key)}`;
  check(
    agree(query[0], value[0]) && agree(query[0], key[0]),
    fn,
    () => `expected query, value and key of one batch size; got ${all()}.`,
  );
  check(
    agree(value[1], key[1]),
    fn,
    () => `expected value.shape[1] (${value[1]}) to equal key.shape[1] (${key[1]}); got ${all()}.`,
  );
  check(
    !causal || agree(query[1], key[1]),
    fn,
    () =>
      `expected query.shape[1] (${query[1]}) to equal key.shape[1] (${key[1]}) in a causal layer; got ${all()}.`,
  );
  if (roles.mask >= 0) {
    const mask = shapes[roles.mask];
    check(
      agree(mask[0], key[0]) && agree(mask[1], key[1]),
      fn,
      () =>
        `expected the mask's shape to be [batch, key length] ${showShape([key[0], key[1]])}; got ${showShape(mask)}.`,
    );
  }
}

/** Throws unless the inputs have the numbers of features that the layer was built for. */
export function checkFeatures(
  fn: string,
  shapes: readonly Shape[],
  roles: Roles,
  built: {query: number; value: number; key: number},
): void {
  for (const name of ['query', 'value', 'key'] as const) {
    const shape = shapes[roles[name]];
    check(
      shape[2] === built[name],
      fn,
      () =>
        `expected ${name}.shape[2] to be ${built[name]}, which the layer was built for; got shape ${showShape(shape)}.`,
    );
  }
}

/** `x` or `[x, ...]` as a list. */
export const toList = <T extends tf.Tensor | object>(inputs: T | T[]): T[] =>
  Array.isArray(inputs) ? inputs : [inputs];

/**
 * The same symbolic call without a tensor that stands in it twice. tfjs 4.22 counts a layer as one reader of a tensor
 * however often it takes it, discounts every time, and disposes the tensor too early: `[x, x]` followed by a residual sum
 * of x fails in predict with "Tensor is disposed". Where the roles need a tensor twice, a layer that changes nothing
 * stands between.
 */
export function withoutRepeats(fn: string, inputs: tfl.SymbolicTensor[]): tfl.SymbolicTensor[] {
  const roles = rolesOf(
    fn,
    inputs.map(({shape}) => shape),
  );
  const [query, value, key] = [inputs[roles.query], inputs[roles.value], inputs[roles.key]];
  const needed = [
    query,
    ...(value === query && key === value ? [] : [value]),
    ...(key === value ? [] : [key]),
    ...(roles.mask < 0 ? [] : [inputs[roles.mask]]),
  ];
  return needed.map((x, i) =>
    needed.indexOf(x) === i
      ? x
      : (tfl.layers.activation({activation: 'linear'}).apply(x) as tfl.SymbolicTensor),
  );
}
