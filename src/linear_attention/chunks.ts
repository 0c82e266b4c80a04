/** The pieces of the chunked form: cutting a sequence into chunks, running sums over chunks, selection. */
import * as tf from '@tensorflow/tfjs-core';

/** Tokens per chunk of the causal form. Even; scores hold N * chunk numbers, states N / chunk * r * D. */
export const CHUNK = 32;

/** x where `keep` (broadcast), 0 elsewhere, whatever x holds there. A null keeps all. */
export function select(keep: tf.Tensor | null, x: tf.Tensor): tf.Tensor {
  return keep === null ? x : tf.tidy(() => tf.where(keep, x, tf.zerosLike(x)));
}

/** [1,C,C] bool, true where column <= row. */
export function lowerTriangle(C: number): tf.Tensor {
  const values = new Uint8Array(C * C);
  for (let row = 0; row < C; row++) {
    values.fill(1, row * C, row * C + row + 1);
  }
  return tf.tensor(values, [1, C, C], 'bool');
}

/** [B,H,N,w] to [B H chunks, C, width], filled up with zeros. */
export function toChunks(x: tf.Tensor, chunks: number, C: number, width: number): tf.Tensor {
  const [B, H, N, w] = x.shape;
  const shape = [B * H * chunks, C, width];
  if (N === 0) {
    return tf.zeros(shape);
  }
  return tf.tidy(() => {
    const full =
      N === chunks * C && w === width
        ? x
        : tf.pad(x, [
            [0, 0],
            [0, 0],
            [0, chunks * C - N],
            [0, width - w],
          ]);
    return tf.reshape(full, shape);
  });
}

/** The inverse: [B H chunks, C, width] to [B,H,N,w], taking `w` columns from `start` on. */
export function fromChunks(
  x: tf.Tensor,
  B: number,
  H: number,
  N: number,
  [start, w]: [start: number, w: number],
): tf.Tensor {
  if (N === 0) {
    return tf.zeros([B, H, N, w]);
  }
  return tf.tidy(() => {
    const [rows, C, width] = x.shape;
    const whole = tf.reshape(x, [B, H, (rows / (B * H)) * C, width]);
    return tf.slice(whole, [0, 0, 0, start], [-1, -1, N, w]);
  });
}

/** Adding copies shifted by 1, 2, 4, ... sums pairwise, and a later entry never reaches an earlier one, NaN included. */
function runningSum(x: tf.Tensor, reverse: boolean): tf.Tensor {
  const [, n] = x.shape;
  return tf.tidy(() => {
    let sum = x;
    for (let shift = 1; shift < n; shift *= 2) {
      const kept = tf.slice(sum, [0, reverse ? shift : 0, 0, 0], [-1, n - shift, -1, -1]);
      const moved = tf.pad(kept, [[0, 0], reverse ? [0, shift] : [shift, 0], [0, 0], [0, 0]]);
      sum = tf.add(sum, moved);
    }
    return sum === x ? tf.clone(x) : sum;
  });
}

/**
 * The state before each chunk, [BH,c,.,.], and after the last, [BH,1,.,.], from what each chunk adds.
 * einsum `bcxy->bxy` over the earlier chunks.
 */
export function exclusivePrefix(initial: tf.Tensor, local: tf.Tensor): [tf.Tensor, tf.Tensor] {
  const chunks = local.shape[1] as number;
  const sums = runningSum(tf.concat([initial, local], 1), false);
  return [
    tf.slice(sums, [0, 0, 0, 0], [-1, chunks, -1, -1]),
    tf.slice(sums, [0, chunks, 0, 0], [-1, 1, -1, -1]),
  ];
}

/** The same from the end: the gradient of the state after each chunk, and before the first. */
export function exclusiveSuffix(local: tf.Tensor, final: tf.Tensor): [tf.Tensor, tf.Tensor] {
  const chunks = local.shape[1] as number;
  const sums = runningSum(tf.concat([local, final], 1), true);
  return [tf.slice(sums, [0, 1, 0, 0], [-1, chunks, -1, -1]), tf.slice(sums, [0, 0, 0, 0], [-1, 1, -1, -1])];
}
