/** Inputs of one attention call, B = 1, as typed arrays and as tensors. */
import {features, normal, tf} from './ours.mjs';

export const HEADS = 8;

/** Typed arrays of N tokens, in the order of the layout that reads them. */
export function arrays(N, r, d = r, seed = 1) {
  return {
    q: normal(HEADS * N * r, seed),
    k: normal(HEADS * N * r, seed + 1),
    v: normal(HEADS * N * d, seed + 2),
  };
}

/** Tensors [1,H,N,.] or, for 'BNHD', [1,N,H,.]; the caller's. */
export function tensors({q, k, v}, N, dataFormat = 'BHND') {
  return [q, k, v].map((values) => {
    const width = values.length / (HEADS * N);
    return tf.tensor(values, dataFormat === 'BHND' ? [1, HEADS, N, width] : [1, N, HEADS, width]);
  });
}

/** What onnxruntime gets: mapped queries and keys (its operator has no feature map). */
export const mapped = ({q, k, v}) => ({q: features(q), k: features(k), v});

/** Values [N,H,d] widened to `width` columns: a column of ones, then zeros. */
export function withOnes(v, N, width) {
  const d = v.length / (HEADS * N);
  const wide = new Float32Array(N * HEADS * width);
  for (let row = 0; row < N * HEADS; row++) {
    wide.set(v.subarray(row * d, (row + 1) * d), row * width);
    wide[row * width + d] = 1;
  }
  return wide;
}
