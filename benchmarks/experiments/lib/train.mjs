/** Training on made-up sequences: batches from a function, loss over marked positions only. */
import {tf, tfla} from '../../lib/ours.mjs';
import {cpuSeconds} from './experiment.mjs';

/** Tensors of a batch: ids [rows,length], or vectors [rows,length,width] where `inputs` are a Float32Array. */
const tensorsOf = ({inputs, targets, counted}, shape) => [
  inputs instanceof Float32Array
    ? tf.tensor(inputs, [...shape, inputs.length / shape[0] / shape[1]])
    : int(inputs, shape),
  int(targets, shape),
  int(counted, shape),
];
const int = (values, shape) => tf.tensor2d(values, shape, 'int32');

/**
 * AdamW with a warm-up over a tenth of the steps and a cosine decay.
 *
 * @param batch step => {inputs, targets, counted} of [rows, length] numbers (inputs also vectors, as a Float32Array); counted is 1 where the loss counts
 * @param batch also gives {rows, length} where batches differ in shape
 * @param every,onEvery called after each `every` steps with {step, loss}, and after the last
 * @returns seconds of processor time
 */
export async function trainOn(
  model,
  {batch, rows, length, steps, learningRate, every = steps, onEvery = () => {}},
) {
  const began = cpuSeconds();
  const variables = model.trainableWeights.map((weight) => weight.read());
  const optimizer = tfla.training.adamW({learningRate, weightDecay: 0.01});
  const rate = tfla.training.schedule({learningRate, steps, warmup: Math.ceil(steps / 10), decay: 'cosine'});
  for (let step = 0; step < steps; step++) {
    const given = batch(step);
    const size = [given.rows ?? rows, given.length ?? length];
    optimizer.learningRate = rate(step);
    const loss = tf.tidy(() => {
      const [x, y, mask] = tensorsOf(given, size);
      const {value, grads} = tf.variableGrads(
        () => tfla.training.tokenLoss(y, model.apply(x, {training: true}), {mask}),
        variables,
      );
      const names = Object.keys(grads);
      const {tensors} = clipped(names.map((name) => grads[name]));
      optimizer.applyGradients(names.map((name, i) => ({name, tensor: tensors[i]})));
      return value;
    });
    const [value] = await loss.data();
    loss.dispose();
    if (!Number.isFinite(value)) throw new Error(`the loss is ${value} in step ${step + 1}`);
    if ((step + 1) % every === 0 || step + 1 === steps) await onEvery({step: step + 1, loss: value});
  }
  optimizer.dispose();
  return cpuSeconds() - began;
}

/** Gradients scaled down to a global norm of 1, where it is larger. */
function clipped(tensors) {
  const norm = tf.sqrt(tf.addN(tensors.map((x) => tf.sum(tf.square(x)))));
  const factor = tf.minimum(1, tf.div(1, tf.maximum(norm, 1e-12)));
  return {tensors: tensors.map((x) => tf.mul(x, factor))};
}

/** Mean loss (nats) and part of right answers over the counted positions of one batch. */
export function test(model, batch, [rows, length]) {
  return tf.tidy(() => {
    const [x, y, mask] = tensorsOf(batch, [rows, length]);
    const logits = model.apply(x, {training: false});
    const right = tf.mul(tf.cast(tf.equal(tf.argMax(logits, -1), y), 'float32'), tf.cast(mask, 'float32'));
    const [loss] = tfla.training.tokenLoss(y, logits, {mask}).dataSync();
    const [hits, all] = [right, mask].map((z) => tf.sum(tf.cast(z, 'float32')).dataSync()[0]);
    return {loss, accuracy: hits / all};
  });
}
