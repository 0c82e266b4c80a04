/** The checks that softmaxAttention and its relatives share. */
import type * as tf from '@tensorflow/tfjs-core';
import {shapeOf} from '../src/convert';
import {check, showShape} from '../src/errors';
import type {DataFormat} from '../src/linear_attention/spec';

export type TensorArgument = tf.Tensor | tf.TensorLike;

export interface AttentionSizes {
  /** 3: one head, [B,N,.]. */
  rank: 3 | 4;
  B: number;
  H: number;
  Nq: number;
  Nk: number;
  r: number;
}

const AXES: {[rank: number]: {[format in DataFormat]: {head: number; length: number}}} = {
  3: {BHND: {head: -1, length: 1}, BNHD: {head: -1, length: 1}},
  4: {BHND: {head: 1, length: 2}, BNHD: {head: 2, length: 1}},
};

/** Checks q [.., Nq, r] and k [.., Nk, r] against each other. */
export function checkQueryKey(
  fn: string,
  q: TensorArgument,
  k: TensorArgument,
  dataFormat: DataFormat,
  causal: boolean,
): AttentionSizes {
  const [qShape, kShape] = [shapeOf(fn, 'q', q), shapeOf(fn, 'k', k)];
  const rank = qShape.length;
  check(
    rank === 3 || rank === 4,
    fn,
    () =>
      `expected q to have rank 4 (${dataFormat === 'BHND' ? '[B,H,N,r]' : '[B,N,H,r]'}) or 3 ([B,N,r]); got ${showShape(qShape)}.`,
  );
  checkSameRank(fn, 'k', kShape, qShape);
  const got = () => `got q ${showShape(qShape)}, k ${showShape(kShape)}.`;
  const {head, length} = AXES[rank][dataFormat];
  checkSameSize(fn, 'k', kShape, 'q', qShape, 0, got);
  if (head >= 0) {
    checkHeads(fn, 'k', kShape[head], qShape[head], got);
  }
  checkSameSize(fn, 'k', kShape, 'q', qShape, rank - 1, got);
  check(qShape[rank - 1] > 0, fn, () => `expected q and k to have at least one feature; ${got()}`);
  if (causal) {
    check(
      qShape[length] === kShape[length],
      fn,
      () =>
        `expected as many queries as keys when causal (q.shape[${length}] ${qShape[length]}, k.shape[${length}] ${kShape[length]}); ${got()}`,
    );
  }
  return {
    rank: rank as 3 | 4,
    B: qShape[0],
    H: head >= 0 ? qShape[head] : 1,
    Nq: qShape[length],
    Nk: kShape[length],
    r: qShape[rank - 1],
  };
}

/** Checks v [.., Nk, d] against what checkQueryKey found. Returns d. */
export function checkValue(
  fn: string,
  k: TensorArgument,
  v: TensorArgument,
  sizes: AttentionSizes,
  dataFormat: DataFormat,
): number {
  const [kShape, vShape] = [shapeOf(fn, 'k', k), shapeOf(fn, 'v', v)];
  const {rank} = sizes;
  checkSameRank(fn, 'v', vShape, kShape, 'k');
  const got = () => `got k ${showShape(kShape)}, v ${showShape(vShape)}.`;
  const {head, length} = AXES[rank][dataFormat];
  checkSameSize(fn, 'v', vShape, 'k', kShape, 0, got);
  if (head >= 0) {
    checkHeads(fn, 'v', vShape[head], sizes.H, got);
  }
  checkSameSize(fn, 'v', vShape, 'k', kShape, length, got);
  return vShape[rank - 1];
}

/** Checks that a mask is [B,N]. */
export function checkMask(fn: string, mask: TensorArgument, B: number, N: number): void {
  const shape = shapeOf(fn, 'mask', mask);
  check(
    shape.length === 2 && shape[0] === B && shape[1] === N,
    fn,
    () => `expected mask to have shape [B,Nk] = [${B},${N}]; got ${showShape(shape)}.`,
  );
}

function checkHeads(fn: string, name: string, got: number, want: number, shapes: () => string): void {
  check(
    got === want,
    fn,
    () =>
      `expected ${name} to have as many heads as q (${want}), grouped heads are not supported yet; ${shapes()}`,
  );
}

function checkSameRank(fn: string, name: string, shape: number[], other: number[], otherName = 'q'): void {
  check(
    shape.length === other.length,
    fn,
    () =>
      `expected ${name} to have the rank of ${otherName} (${other.length}); got ${otherName} ${showShape(other)}, ${name} ${showShape(shape)}.`,
  );
}

function checkSameSize(
  fn: string,
  name: string,
  shape: number[],
  otherName: string,
  other: number[],
  axis: number,
  got: () => string,
): void {
  check(
    shape[axis] === other[axis],
    fn,
    () =>
      `expected ${name}.shape[${axis}] (${shape[axis]}) to equal ${otherName}.shape[${axis}] (${other[axis]}); ${got()}`,
  );
}
