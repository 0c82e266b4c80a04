/** The native operation tried out in tfjs-node's TensorFlow: causal attention of two tokens, computed by hand here. */

/** Throws when the operation in the file `path` does not run, or is wrong. */
export function checkOperation(tf, path, tag) {
  process.dlopen({exports: {}}, path);
  const [identity, eps, scale] = [0, 0, 1];
  const [causal, normalize, bnhd, hasMask, hasState, returnState] = [1, 1, 0, 0, 0, 1];
  const settings = tf.tensor1d(
    [identity, eps, scale, causal, normalize, bnhd, hasMask, hasState, returnState],
    'float32',
  );
  const [q, k, v] = [
    [1, 2],
    [3, 5],
    [10, 20],
  ].map((values) => tf.tensor(values, [1, 1, 2, 1]));
  const none = tf.zeros([1]);
  const [output] = tf
    .backend()
    .executeMultipleOutputs(`TflaForward${tag}`, [], [q, k, v, none, none, none, settings], 4);
  const got = [...output.dataSync()];
  const want = [10, (3 * 10 + 5 * 20) / (3 + 5)];
  if (!want.every((x, i) => Math.abs(x - got[i]) < 1e-4)) {
    throw new Error(`the native operation: expected ${want}; got ${got}`);
  }
}
