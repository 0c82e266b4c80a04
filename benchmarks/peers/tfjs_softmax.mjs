/** Softmax attention in stock tfjs ops. */
import * as tf from '@tensorflow/tfjs-core';

const HIDDEN = -1e30;

/** Causal; q, k [B,H,N,r], v [B,H,N,d], in two batched products. */
export function softmax(q, k, v) {
  return tf.tidy(() => {
    const [, , N, r] = q.shape;
    const seen = tf.linalg.bandPart(tf.ones([N, N]), -1, 0);
    const bias = tf.reshape(tf.mul(tf.sub(1, seen), HIDDEN), [1, 1, N, N]);
    const scores = tf.add(tf.matMul(tf.mul(q, 1 / Math.sqrt(r)), k, false, true), bias);
    return tf.matMul(tf.softmax(scores), v);
  });
}

/** The same head by head, transposed beforehand: plain products are what tfjs's wasm backend runs fast. Forward. */
export function softmaxByHead(q, k, v) {
  return tf.tidy(() => {
    const [B, H, N, r] = q.shape;
    const d = v.shape[3];
    const heads = (x, width) => tf.unstack(tf.reshape(x, [B * H, N, width]));
    const [Q, K, V] = [heads(q, r), heads(k, r), heads(v, d)];
    const seen = tf.linalg.bandPart(tf.ones([N, N]), -1, 0);
    const bias = tf.mul(tf.sub(1, seen), HIDDEN);
    const outputs = Q.map((head, i) =>
      tf.tidy(() => {
        const scores = tf.matMul(tf.mul(head, 1 / Math.sqrt(r)), tf.transpose(K[i]));
        return tf.matMul(tf.softmax(tf.add(scores, bias)), V[i]);
      }),
    );
    return tf.reshape(tf.stack(outputs), [B, H, N, d]);
  });
}

/** One query over a cache: q [G,1,r], transposed keys [G,r,L], values [G,L,d] of L tokens. */
export function softmaxStep(q, keysTransposed, values) {
  return tf.tidy(() => {
    const r = q.shape[2];
    return tf.matMul(tf.softmax(tf.matMul(tf.mul(q, 1 / Math.sqrt(r)), keysTransposed)), values);
  });
}
