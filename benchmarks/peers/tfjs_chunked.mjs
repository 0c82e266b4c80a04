/**
 * Causal linear attention (elu + 1, normalised) in stock tfjs ops, the way a user without this package writes it: chunks,
 * attention within a chunk, and the state of all earlier chunks. Differentiable by tfjs's own gradients.
 *
 * Legend: G = B H, c chunks of C tokens, V~ = [V, 1] of d + 1 columns, so that one state holds numerator and normaliser.
 */
import * as tf from '@tensorflow/tfjs-core';

export const CHUNKS = [16, 32, 64, 128];

const EPS = 1e-6;
const phi = (x) => tf.add(tf.relu(x), tf.exp(tf.minimum(x, 0)));

const divide = (both, d) => {
  const rank = both.shape.length;
  const from = (start) => [...Array(rank - 1).fill(0), start];
  const size = (width) => [...both.shape.slice(0, -1), width];
  return tf.div(tf.slice(both, from(0), size(d)), tf.add(tf.slice(both, from(d), size(1)), EPS));
};

/**
 * The sum of the chunks before each chunk, [c, w]: a product with a strictly lower triangle. One plain product is the
 * only shape that tfjs's wasm matMul runs fast; a loop of additions over the chunks was slower.
 */
const statesBefore = (local, c) => {
  const triangle = tf.linalg.bandPart(tf.ones([c, c]), -1, 0);
  return tf.matMul(tf.sub(triangle, tf.eye(c)), local);
};

/** The same by adding copies shifted by 1, 2, 4, ..: cheaper than the triangle when there are many chunks. */
const statesBeforeByDoubling = (local, c) => {
  const shift = (x, n) =>
    tf.pad(tf.slice(x, [0, 0], [c - n, x.shape[1]]), [
      [n, 0],
      [0, 0],
    ]);
  let sum = c > 1 ? shift(local, 1) : tf.zerosLike(local);
  for (let n = 1; n < c; n *= 2) sum = tf.add(sum, shift(sum, n));
  return sum;
};

/**
 * All heads and chunks in one batch. q, k [B,H,N,r], v [B,H,N,d] with N a multiple of C.
 * @param doubling which of the two sums over chunks
 */
export function chunked(q, k, v, {C, doubling = false}) {
  return tf.tidy(() => {
    const [B, H, N, r] = q.shape;
    const d = v.shape[3];
    const G = B * H;
    const c = N / C;
    // Chunks first: [c, G, C, .], so that sums over chunks are plain products.
    const cut = (x, width) => tf.transpose(tf.reshape(x, [G, c, C, width]), [1, 0, 2, 3]);
    const rows = (x, width) => tf.reshape(cut(x, width), [c * G, C, width]);
    const Q = rows(phi(q), r);
    const K = rows(phi(k), r);
    const V = rows(tf.concat([v, tf.ones([B, H, N, 1])], 3), d + 1);
    const local = tf.reshape(tf.matMul(K, V, true, false), [c, G * r * (d + 1)]);
    const before = (doubling ? statesBeforeByDoubling : statesBefore)(local, c);
    const states = tf.reshape(before, [c * G, r, d + 1]);
    const mask = tf.reshape(tf.linalg.bandPart(tf.ones([C, C]), -1, 0), [1, C, C]);
    const scores = tf.mul(tf.matMul(Q, K, false, true), mask);
    const both = tf.add(tf.matMul(Q, states), tf.matMul(scores, V));
    const output = divide(both, d);
    return tf.reshape(tf.transpose(tf.reshape(output, [c, G, C, d]), [1, 0, 2, 3]), [B, H, N, d]);
  });
}

/**
 * Head by head and chunk by chunk with plain products only, transposed beforehand: tfjs's wasm backend runs these by
 * XNNPACK, and batched or transposed ones by a scalar loop that is up to 30 times slower. Hardly how one writes it; forward.
 */
export function chunkedByHead(q, k, v, {C}) {
  return tf.tidy(() => {
    const [B, H, N, r] = q.shape;
    const d = v.shape[3];
    const G = B * H;
    const mask = tf.linalg.bandPart(tf.ones([C, C]), -1, 0);
    const heads = (x, width) => tf.unstack(tf.reshape(x, [G, N, width]));
    const [Q, K, V] = [
      heads(phi(q), r),
      heads(phi(k), r),
      heads(tf.concat([v, tf.ones([B, H, N, 1])], 3), d + 1),
    ];
    const outputs = Q.map((headQ, head) =>
      tf.tidy(() => {
        let state = tf.zeros([r, d + 1]);
        const both = [];
        for (let at = 0; at < N; at += C) {
          const part = (x) => (C === N ? x : tf.slice(x, [at, 0], [C, x.shape[1]]));
          const [qc, kc, vc] = [part(headQ), part(K[head]), part(V[head])];
          const kt = tf.transpose(kc);
          const inside = tf.matMul(tf.mul(tf.matMul(qc, kt), mask), vc);
          both.push(at === 0 ? inside : tf.add(inside, tf.matMul(qc, state)));
          state = tf.add(state, tf.matMul(kt, vc));
        }
        return divide(tf.concat(both, 0), d);
      }),
    );
    return tf.reshape(tf.stack(outputs), [B, H, N, d]);
  });
}

/** Not causal: two products over the whole length. */
export function whole(q, k, v) {
  return tf.tidy(() => {
    const [B, H, N] = v.shape;
    const d = v.shape[3];
    const V = tf.concat([v, tf.ones([B, H, N, 1])], 3);
    return divide(tf.matMul(phi(q), tf.matMul(phi(k), V, true, false)), d);
  });
}
