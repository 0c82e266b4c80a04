/** Shape checks that the attention ops share, without making a tensor. */
import type * as tf from '@tensorflow/tfjs-core';
import {shapeOf} from '../src/convert';
import {check, showShape} from '../src/errors';
import type {DataFormat} from '../src/linear_attention/spec';

export type Input = tf.Tensor | tf.TensorLike;

/** Sizes of one attention call, and whether it came without a head axis. */
export interface AttentionSizes {
  B: number;
  H: number;
  Nq: number;
  Nk: number;
  r: number;
  d: number;
  /** True: q, k and v are [B,N,.]. */
  oneHead: boolean;
}

/** Where an input's axes are; -1 where it has none. The batch comes first and the features last. */
interface Axes {
  head: number;
  length: number;
}

interface Shapes {
  q: number[];
  k: number[];
  v: number[];
}

/** "got q [..], k [..]." of the named inputs. */
const describe = (shapes: Shapes, names: string): string =>
  `got ${[...names].map((name) => `${name} ${showShape(shapes[name as keyof Shapes])}`).join(', ')}.`;

/** Checks the sizes of q, k and v against each other; their ranks are right already. */
function checkSizes(fn: string, shapes: Shapes, {head, length}: Axes, causal: boolean): AttentionSizes {
  const last = shapes.q.length - 1;
  const equal = (a: keyof Shapes, b: keyof Shapes, axis: number, hint = '') =>
    check(
      axis < 0 || shapes[a][axis] === shapes[b][axis],
      fn,
      () =>
        `expected ${a}.shape[${axis}] (${shapes[a][axis]}) to equal ${b}.shape[${axis}] (${shapes[b][axis]})${hint}; ${describe(shapes, a === 'v' ? b + a : 'qk')}`,
    );
  equal('k', 'q', 0);
  equal('v', 'q', 0);
  equal('k', 'q', head, ': grouped heads are not supported yet');
  equal('v', 'q', head, ': grouped heads are not supported yet');
  equal('k', 'q', last);
  equal('v', 'k', length);
  if (causal) {
    equal('k', 'q', length, ' when causal');
  }
  for (const [name, shape] of Object.entries(shapes)) {
    const empty = (shape as number[]).findIndex((size, axis) => size === 0 && axis !== length);
    check(
      empty < 0,
      fn,
      () => `expected ${name}.shape[${empty}] to be at least 1; ${describe(shapes, name)}`,
    );
  }
  return {
    B: shapes.q[0],
    H: head < 0 ? 1 : shapes.q[head],
    Nq: length < 0 ? 1 : shapes.q[length],
    Nk: length < 0 ? 1 : shapes.k[length],
    r: shapes.q[last],
    d: shapes.v[last],
    oneHead: head < 0,
  };
}

/**
 * Checks q, k and v of a call over sequences: rank 3 ([B,N,.], one head) or rank 4 in the given layout, all alike.
 *
 * @param causal Whether Nq = Nk is needed.
 */
export function checkAttentionShapes(
  fn: string,
  q: unknown,
  k: unknown,
  v: unknown,
  dataFormat: DataFormat,
  causal: boolean,
): AttentionSizes {
  const shapes = {q: shapeOf(fn, 'q', q), k: shapeOf(fn, 'k', k), v: shapeOf(fn, 'v', v)};
  return checkSequences(fn, 'qkv', shapes, dataFormat, causal);
}

/** The same for a call that has no v; d is that of k. */
export function checkQueryKeyShapes(fn: string, q: unknown, k: unknown, causal: boolean): AttentionSizes {
  const [qShape, kShape] = [shapeOf(fn, 'q', q), shapeOf(fn, 'k', k)];
  return checkSequences(fn, 'qk', {q: qShape, k: kShape, v: kShape}, 'BHND', causal);
}

function checkSequences(
  fn: string,
  names: 'qk' | 'qkv',
  shapes: Shapes,
  dataFormat: DataFormat,
  causal: boolean,
): AttentionSizes {
  const rank = shapes.q.length;
  const layout = dataFormat === 'BHND' ? '[B,H,N,.]' : '[B,N,H,.]';
  check(
    (rank === 3 || rank === 4) && shapes.k.length === rank && shapes.v.length === rank,
    fn,
    () =>
      `expected ${names === 'qk' ? 'q and k' : 'q, k and v'} to be all of rank 4 (${layout}) or all of rank 3 ([B,N,.], one head); ${describe(shapes, names)}`,
  );
  const axes =
    rank === 3 ? {head: -1, length: 1} : dataFormat === 'BHND' ? {head: 1, length: 2} : {head: 2, length: 1};
  return checkSizes(fn, shapes, axes, causal);
}

/** Checks q, k and v of one token: [B,H,.] each. */
export function checkStepShapes(fn: string, q: unknown, k: unknown, v: unknown): AttentionSizes {
  const shapes = {q: shapeOf(fn, 'q', q), k: shapeOf(fn, 'k', k), v: shapeOf(fn, 'v', v)};
  check(
    [shapes.q, shapes.k, shapes.v].every((shape) => shape.length === 3),
    fn,
    () => `expected q, k and v to be of rank 3 ([B,H,.], one token); ${describe(shapes, 'qkv')}`,
  );
  return checkSizes(fn, shapes, {head: 1, length: -1}, false);
}

/** Checks that `x` has this shape; `letters` name the axes in the message, as in '[B,Nk]'. */
export function checkShape(fn: string, name: string, x: unknown, shape: number[], letters: string): void {
  const got = shapeOf(fn, name, x);
  check(
    got.length === shape.length && got.every((size, axis) => size === shape[axis]),
    fn,
    () => `expected ${name} to be of shape ${letters} = ${showShape(shape)}; got ${showShape(got)}.`,
  );
}
