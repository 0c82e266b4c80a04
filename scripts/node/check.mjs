/**
 * A child of the set-up: what it tries may crash.
 *
 *     check.mjs binding FILE           the compiled binding multiplies matrices
 *     check.mjs package FOLDER         tfjs-node does
 *     check.mjs operation FILE FOLDER TAG  the native operation runs in tfjs-node's TensorFlow
 */
import {createRequire} from 'node:module';

const [what, path, folder, tag] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const A = Float32Array.of(1, 2, 3, 4);
const B = Float32Array.of(5, 6, 7, 8);

function expect(got, want) {
  if (got.length !== want.length || !want.every((x, i) => Math.abs(x - got[i]) < 1e-5)) {
    throw new Error(`${what}: expected ${want}; got ${[...got]}`);
  }
}

if (what === 'binding') {
  const binding = require(path);
  const [a, b] = [A, B].map((values) => binding.createTensor([2, 2], binding.TF_FLOAT, values));
  const attributes = [
    {name: 'transpose_a', type: binding.TF_ATTR_BOOL, value: false},
    {name: 'transpose_b', type: binding.TF_ATTR_BOOL, value: false},
    {name: 'T', type: binding.TF_ATTR_TYPE, value: binding.TF_FLOAT},
  ];
  const [product] = binding.executeOp('MatMul', attributes, [a, b], 1);
  expect(binding.tensorDataSync(product.id), [19, 22, 43, 50]);
} else {
  const tf = require(what === 'package' ? path : folder);
  expect(tf.matMul(tf.tensor(A, [2, 2]), tf.tensor(B, [2, 2])).dataSync(), [19, 22, 43, 50]);
  if (what === 'operation') {
    const {checkOperation} = await import('./check_operation.mjs');
    checkOperation(tf, path, tag);
  }
}
