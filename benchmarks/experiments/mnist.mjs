/**
 * Pixel by pixel: models of MNIST images (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236, section 4.2): bits
 * per dimension of linear and softmax attention, and images per second of linear attention, softmax with a key-value cache
 * and softmax recomputed for each pixel. Images of 14 x 14 unless --side 28.
 *
 *     node benchmarks/experiments/mnist.mjs [--quick] [--side 28] [--steps 800] [--layers 4]
 */
import {generator, start, table} from './lib/experiment.mjs';
import {mnist} from './lib/mnist.mjs';
import {linePlot} from './lib/plot.mjs';
import {test, trainOn} from './lib/train.mjs';

const {tf, tfla, quick, values, log, finish} = await start('mnist', {
  options: {side: {type: 'string'}, steps: {type: 'string'}, layers: {type: 'string'}},
});
const SIDE = Number(values.side ?? (quick ? 7 : 14));
const LENGTH = SIDE ** 2;
const STEPS = Number(values.steps ?? (quick ? 10 : 800));
const SIZES = quick
  ? {dModel: 16, numLayers: 1, numHeads: 2}
  : {dModel: 128, numLayers: Number(values.layers ?? 4), numHeads: 4};
const ROWS = 8;
const START = 256;
/** Images that are generated side by side. */
const BATCH = 8;
const KINDS = {softmax: {attention: 'softmax'}, linear: {featureMap: 'elu'}};
const {train, test: held} = mnist(SIDE);

function batchOf(images) {
  const inputs = images.flatMap((image) => [START, ...image.subarray(0, LENGTH - 1)]);
  const targets = images.flatMap((image) => Array.from(image));
  return {inputs, targets, counted: targets.map(() => 1)};
}

/** Mean bits per pixel over held-out images. */
function bitsPerDimension(model) {
  let sum = 0;
  const images = held.slice(0, quick ? 16 : held.length);
  for (let i = 0; i < images.length; i += ROWS)
    sum += test(model, batchOf(images.slice(i, i + ROWS)), [ROWS, LENGTH]).loss * ROWS;
  return sum / images.length / Math.LN2;
}

/** Seconds to generate BATCH images token by token. */
function secondsOfStream(model) {
  const stream = tfla.generation.stream(model, {batchSize: BATCH});
  let tokens = Array(BATCH).fill(START);
  let began = 0;
  for (let i = 0; i < LENGTH; i++) {
    if (i === 1) began = performance.now(); // the first step warms up
    const logits = stream.step(tokens);
    const next = tf.tidy(() => tf.argMax(logits, 1).dataSync());
    logits.dispose();
    tokens = Array.from(next, (id) => Math.min(id, 255));
  }
  stream.dispose();
  return ((performance.now() - began) / 1000) * (LENGTH / (LENGTH - 1));
}

/** The same with the model run over the whole prefix for each pixel: measured at some lengths, and added up. */
function secondsOfRecomputing(model) {
  const lengths = Array.from({length: 9}, (_, i) => Math.max(1, Math.round((i * LENGTH) / 8)));
  const seconds = lengths.map((length) => {
    const ids = tf.zeros([BATCH, length], 'int32');
    const run = () =>
      tf.tidy(() => tf.argMax(tf.slice(model.apply(ids), [0, length - 1, 0], [-1, 1, -1]), 2).dataSync());
    run();
    const began = performance.now();
    run();
    ids.dispose();
    return (performance.now() - began) / 1000;
  });
  return seconds
    .slice(1)
    .reduce((sum, s, i) => sum + ((s + seconds[i]) / 2) * (lengths[i + 1] - lengths[i]), 0);
}

const result = {};
const series = [];
for (const [name, kind] of Object.entries(KINDS)) {
  const model = tfla.models.transformer({
    vocabSize: 257,
    position: 'learned',
    maxLength: LENGTH,
    seed: 1,
    ...SIZES,
    ...kind,
  });
  const rng = generator(1);
  const points = [];
  const began = performance.now();
  await trainOn(model, {
    ...{
      rows: ROWS,
      length: LENGTH,
      steps: STEPS,
      learningRate: 2e-3,
      every: Math.max(1, Math.floor(STEPS / 20)),
    },
    batch: () => batchOf(Array.from({length: ROWS}, () => train[rng.below(train.length)])),
    onEvery: ({step, loss}) => {
      points.push([step, loss / Math.LN2]);
      log(`${name}: step ${step}, ${(loss / Math.LN2).toFixed(3)} bits per dimension`);
    },
  });
  const minutes = (performance.now() - began) / 60000;
  series.push({name, points});
  result[name] = {bits: bitsPerDimension(model), minutes, stream: BATCH / secondsOfStream(model)};
  if (name === 'softmax') result.recomputed = BATCH / secondsOfRecomputing(model);
  model.dispose();
}
const {linear, softmax, recomputed} = result;
const speed = (x) => x.toPrecision(3);
finish(
  'MNIST, pixel by pixel',
  [
    `${SIDE} x ${SIDE} pixels of 256 grey levels, ${LENGTH} steps an image; ${SIZES.numLayers} layers of size ${SIZES.dModel}, ${SIZES.numHeads} heads, ${STEPS} steps of ${ROWS} images, ${train.length} images to train on, ${held.length} held out. ${BATCH} images are generated side by side; recomputed softmax is measured at nine lengths and added up.`,
    table(
      [
        '',
        'bits per dimension',
        'images per second',
        'linear is faster',
        'minutes of training',
        'paper: bits per dimension',
        'paper: images per second',
      ],
      [
        [
          'linear (elu)',
          linear.bits.toFixed(3),
          speed(linear.stream),
          '',
          linear.minutes.toFixed(1),
          '0.644',
          '142.8',
        ],
        [
          'softmax, key-value cache',
          softmax.bits.toFixed(3),
          speed(softmax.stream),
          `${speed(linear.stream / softmax.stream)}x`,
          softmax.minutes.toFixed(1),
          '0.621',
          '7.56 (18.9x)',
        ],
        [
          'softmax, recomputed',
          softmax.bits.toFixed(3),
          speed(recomputed),
          `${speed(linear.stream / recomputed)}x`,
          '',
          '0.621',
          '0.45 (317x)',
        ],
      ],
    ),
    'The paper has 784 pixels, 8 layers, 8 heads of 32, 250 epochs of 60,000 images on a GPU, and a mixture of logistics for the pixel values; its bits per dimension are not comparable where the images are smaller.',
  ],
  {
    loss: linePlot({
      title: `MNIST ${SIDE} x ${SIDE}: training loss`,
      x: {title: 'step', include: [0]},
      y: {title: 'bits per dimension'},
      series,
    }),
  },
);
