/**
 * The character GPT in stock tfjs ops, the way it is written on the wasm backend: embedding by a one-hot product (its gather
 * has no gradient there), softmax attention, pre-norm blocks, tanh gelu, tied head, Adam.
 *
 * Weights have the names and shapes of `models.transformer({attention: 'softmax', position: 'learned', activation: 'geluTanh'})`.
 */
import * as tf from '@tensorflow/tfjs-core';

const EPS = 1e-5;

/**
 * @param weights {name: {values, shape}}
 * @param sizes {vocab, dModel, layers, heads}
 * @returns {step(ids, targets): loss as a number, dispose()}; ids and targets are int32 [B,T]
 */
export function tfjsGpt(weights, {vocab, dModel, layers, heads}, {learningRate, beta1, beta2, epsilon}) {
  const variables = Object.fromEntries(
    Object.entries(weights).map(([name, {values, shape}]) => [
      name,
      tf.tidy(() => tf.variable(tf.tensor(values, shape))),
    ]),
  );
  const all = Object.values(variables);
  const optimizer = tf.train.adam(learningRate, beta1, beta2, epsilon);
  const size = dModel / heads;

  const norm = (x, name) => {
    const centred = tf.sub(x, tf.mean(x, -1, true));
    const scaled = tf.mul(centred, tf.rsqrt(tf.add(tf.mean(tf.square(centred), -1, true), EPS)));
    return tf.add(tf.mul(scaled, variables[`${name}/gamma`]), variables[`${name}/beta`]);
  };
  const gelu = (x) => {
    const inner = tf.mul(tf.add(x, tf.mul(tf.mul(tf.square(x), x), 0.044715)), Math.sqrt(2 / Math.PI));
    return tf.mul(tf.mul(x, 0.5), tf.add(tf.tanh(inner), 1));
  };
  // Activations are matrices [B T, D]: products of one plain pair are what the wasm backend runs fast.
  const project = (x, name, part, units) =>
    tf.add(
      tf.matMul(x, tf.reshape(variables[`${name}/${part}kernel`], [-1, units])),
      tf.reshape(variables[`${name}/${part}bias`], [units]),
    );
  const attention = (x, name, B, T, bias) => {
    const split = (part) =>
      tf.transpose(tf.reshape(project(x, name, part, dModel), [B, T, heads, size]), [0, 2, 1, 3]);
    const scores = tf.matMul(tf.mul(split('query_'), 1 / Math.sqrt(size)), split('key_'), false, true);
    const mixed = tf.matMul(tf.softmax(tf.add(scores, bias)), split('value_'));
    const rows = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [B * T, dModel]);
    return project(rows, name, 'output_', dModel);
  };
  const loss = (ids, targets) => {
    const [B, T] = ids.shape;
    const table = variables['token_embedding/embeddings'];
    const positions = tf.slice(variables['position_embedding/embeddings'], [0, 0], [T, dModel]);
    const hidden = tf.mul(tf.sub(1, tf.linalg.bandPart(tf.ones([T, T]), -1, 0)), -1e30);
    const oneHot = (x) => tf.cast(tf.oneHot(tf.reshape(x, [B * T]), vocab), 'float32');
    const embedded = tf.reshape(tf.matMul(oneHot(ids), table), [B, T, dModel]);
    let x = tf.reshape(tf.add(embedded, positions), [B * T, dModel]);
    for (let block = 0; block < layers; block++) {
      const name = `block_${block}`;
      x = tf.add(x, attention(norm(x, `${name}_attention_norm`), `${name}_attention`, B, T, hidden));
      const inner = gelu(project(norm(x, `${name}_ffn_norm`), `${name}_ffn_in`, '', 4 * dModel));
      x = tf.add(x, project(inner, `${name}_ffn_out`, '', dModel));
    }
    const logits = tf.matMul(norm(x, 'final_norm'), tf.transpose(table));
    return tf.neg(tf.mean(tf.sum(tf.mul(oneHot(targets), tf.logSoftmax(logits)), -1)));
  };

  return {
    step(ids, targets) {
      const cost = tf.tidy(() => optimizer.minimize(() => loss(ids, targets), true, all));
      const value = cost.dataSync()[0];
      cost.dispose();
      return value;
    },
    dispose() {
      tf.dispose(all);
      optimizer.dispose();
    },
  };
}
