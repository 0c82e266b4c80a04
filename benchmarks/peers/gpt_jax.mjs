/**
 * The character GPT in jax-js: softmax attention, loss, gradient and Adam in one jitted function, on its wasm device. In Node
 * it runs on one thread (its workers need a page's Worker). Weights as in gpt_tfjs.mjs.
 *
 * jax-js counts references: a function owns what it is given, `x.ref` lends it once more.
 */
import {blockUntilReady, defaultDevice, init, jit, nn, numpy as np, tree, valueAndGrad} from '@jax-js/jax';

/** @returns {step(ids, targets): Promise of the loss}; ids and targets are Int32Array of B T numbers. */
export async function jaxGpt(
  weights,
  {vocab, dModel, layers, heads, B, T},
  {learningRate, beta1, beta2, epsilon},
) {
  await init('wasm');
  defaultDevice('wasm');
  const size = dModel / heads;
  const rows = B * T;

  const norm = (x, p, name) => nn.standardize(x).mul(p[`${name}/gamma`]).add(p[`${name}/beta`]);
  const gelu = (x) => {
    const inner = x.ref.add(x.ref.mul(x.ref).mul(x.ref).mul(0.044715)).mul(Math.sqrt(2 / Math.PI));
    return x.mul(0.5).mul(np.tanh(inner).add(1));
  };
  const project = (x, p, name, part, units) =>
    np
      .matmul(x, p[`${name}/${part}kernel`].reshape([-1, units]))
      .add(p[`${name}/${part}bias`].reshape([units]));
  const attention = (x, p, name) => {
    const split = (y, part) => project(y, p, name, part, dModel).reshape([B, T, heads, size]);
    const mixed = nn.dotProductAttention(split(x.ref, 'query_'), split(x.ref, 'key_'), split(x, 'value_'), {
      isCausal: true,
    });
    return project(mixed.reshape([rows, dModel]), p, name, 'output_', dModel);
  };
  const loss = (p, ids, targets) => {
    const table = p['token_embedding/embeddings'];
    const embedded = np.matmul(nn.oneHot(ids, vocab), table.ref).reshape([B, T, dModel]);
    let x = embedded.add(p['position_embedding/embeddings']).reshape([rows, dModel]);
    for (let block = 0; block < layers; block++) {
      const name = `block_${block}`;
      x = x.ref.add(attention(norm(x, p, `${name}_attention_norm`), p, `${name}_attention`));
      const inner = gelu(project(norm(x.ref, p, `${name}_ffn_norm`), p, `${name}_ffn_in`, '', 4 * dModel));
      x = x.add(project(inner, p, `${name}_ffn_out`, '', dModel));
    }
    const logits = np.matmul(norm(x, p, 'final_norm'), table.transpose());
    return nn
      .oneHot(targets, vocab)
      .mul(nn.logSoftmax(logits))
      .sum()
      .mul(-1 / rows);
  };

  const update = jit((p, m, v, ids, targets, rate, smallest) => {
    const [value, g] = valueAndGrad(loss)(tree.ref(p), ids, targets);
    const next = {p: {}, m: {}, v: {}, loss: value};
    for (const name of Object.keys(g)) {
      const gradient = g[name];
      next.m[name] = m[name].mul(beta1).add(gradient.ref.mul(1 - beta1));
      next.v[name] = v[name].mul(beta2).add(gradient.ref.mul(gradient).mul(1 - beta2));
      const change = next.m[name].ref.mul(rate.ref).div(np.sqrt(next.v[name].ref).add(smallest.ref));
      next.p[name] = p[name].sub(change);
    }
    rate.dispose();
    smallest.dispose();
    return next;
  });

  const arrays = (make) =>
    Object.fromEntries(
      Object.entries(weights).map(([name, weight]) => [name, make(weight).reshape(weight.shape)]),
    );
  let state = {
    p: arrays(({values}) => np.array(values)),
    m: arrays(({values}) => np.array(new Float32Array(values.length))),
    v: arrays(({values}) => np.array(new Float32Array(values.length))),
  };
  let t = 0;
  return {
    async step(ids, targets) {
      t += 1;
      const root = Math.sqrt(1 - beta2 ** t);
      const {loss: value, ...next} = update(
        state.p,
        state.m,
        state.v,
        np.array(ids),
        np.array(targets),
        np.array((learningRate * root) / (1 - beta1 ** t)),
        np.array(epsilon * root),
      );
      state = next;
      // The loss first: it submits the whole program at once, and waiting for 200 weights one by one is slower.
      const [cost] = await value.data();
      await blockUntilReady(state);
      return cost;
    },
  };
}
