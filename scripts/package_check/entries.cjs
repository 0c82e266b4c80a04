/** The operations and the kernels of one backend alone, by require: no layers are read; then all entries, one copy of each. */
const tf = require('@tensorflow/tfjs-core');
require('@tensorflow/tfjs-backend-cpu');
const {linearAttention} = require('tfjs-linear-attention/ops');

async function main() {
  await tf.setBackend('cpu');
  const x = tf.ones([1, 1, 3, 2]);
  // Without kernels the composed form does the work; the backend's own take its place.
  const warn = console.warn;
  console.warn = (text) => {
    throw new Error(`expected no warning; got ${text}`);
  };
  const kernel = () => tf.getKernel('LinearAttention', 'cpu');
  const composed = await linearAttention(x, x, x, {causal: true}).data();
  const before = kernel();
  require('tfjs-linear-attention/kernels/cpu');
  if (before === kernel()) throw new Error("expected the backend's own kernel in the composed form's place");
  const own = await linearAttention(x, x, x, {causal: true}).data();
  if (own.some((value, i) => Math.abs(value - composed[i]) > 1e-5)) throw new Error('the two forms differ');
  const gradient = tf.grad((v) => linearAttention(x, x, v))(x, x);
  if ((await tf.sum(gradient).data())[0] < 1) throw new Error('expected a gradient');
  console.warn = warn;
  const read = Object.keys(require.cache);
  if (read.some((path) => /tfjs-layers/.test(path)))
    throw new Error('tfjs-layers was read for the operations');

  const all = require('tfjs-linear-attention');
  const check = (name, part, whole) => {
    for (const key of Object.keys(part)) {
      if (key !== '__esModule' && part[key] !== whole[key]) throw new Error(`${name} has a copy of ${key}`);
    }
  };
  check('ops', require('tfjs-linear-attention/ops'), all);
  for (const name of ['layers', 'models', 'generation', 'training', 'patches']) {
    check(name, require(`tfjs-linear-attention/${name}`), all[name]);
    check(name, await import(`tfjs-linear-attention/${name}`).then((x) => ({...x, default: undefined})), {
      ...all[name],
      default: undefined,
    });
  }
}
main().catch((error) => {
  console.error(error);
  process.exit(1);
});
