/** The native operation tried out in tfjs-node's TensorFlow: causal attention of two tokens, computed by hand here. */

/** Throws when the operation in the file `path` does not run, or is wrong. */
export function checkOperation(tf, path, tag) {
  process.dlopen({exports: {}}, path);
  const {binding} = tf.backend();
  const attribute = (type) => (name, value) => ({name, type: binding[type], value});
  const [integer, float, bool] = ['TF_ATTR_INT', 'TF_ATTR_FLOAT', 'TF_ATTR_BOOL'].map(attribute);
  const attributes = [
    ...[integer('map', 0), float('eps', 0), float('scale', 1), bool('causal', true), bool('normalize', true)],
    ...[bool('bnhd', false), bool('has_mask', false), bool('has_state', false), bool('return_state', true)],
  ];
  const [q, k, v] = [
    [1, 2],
    [3, 5],
    [10, 20],
  ].map((values) => tf.tensor(values, [1, 1, 2, 1]));
  const none = tf.zeros([1]);
  const [output] = tf
    .backend()
    .executeMultipleOutputs(`TflaForward${tag}`, attributes, [q, k, v, none, none, none], 4);
  const got = [...output.dataSync()];
  const want = [10, (3 * 10 + 5 * 20) / (3 + 5)];
  if (!want.every((x, i) => Math.abs(x - got[i]) < 1e-4)) {
    throw new Error(`the native operation: expected ${want}; got ${got}`);
  }
}
