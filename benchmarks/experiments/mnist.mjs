/**
 * Pixel by pixel: models of MNIST images (Katharopoulos et al. 2020, https://arxiv.org/abs/2006.16236, section 4.2): bits
 * per dimension of linear and softmax attention, trained here on images of 14 x 14 (--side 28 for whole ones); and images
 * per second of linear attention, softmax with a key-value cache and softmax recomputed for each pixel, for whole images
 * and the paper's 8 layers with 8 heads of 32 (weights do not change speed, so that model is not trained).
 *
 *     node benchmarks/experiments/mnist.mjs [--quick] [--side 28] [--steps 600] [--layers 4] [--backend node]
 */
import {cpuSeconds, generator, start, table} from './lib/experiment.mjs';
import {mnist} from './lib/mnist.mjs';
import {linePlot} from './lib/plot.mjs';
import {test, trainOn} from './lib/train.mjs';

const {tf, tfla, quick, values, log, once, publish} = await start('mnist', {
  options: {
    side: {type: 'string'},
    steps: {type: 'string'},
    layers: {type: 'string'},
    rate: {type: 'string'},
  },
});
const SIDE = Number(values.side ?? (quick ? 7 : 14));
const LENGTH = SIDE ** 2;
const STEPS = Number(values.steps ?? (quick ? 10 : 600));
const RATE = Number(values.rate ?? 0.006);
const SIZES = quick
  ? {dModel: 16, numLayers: 1, numHeads: 2}
  : {dModel: 64, numLayers: Number(values.layers ?? 4), numHeads: 4};
const ROWS = 8;
const START = 256;
const KINDS = {
  softmax: {attention: 'softmax'},
  'linear, elu': {featureMap: 'elu'},
};
const {train, test: held} = mnist(SIDE);

function batchOf(images) {
  const inputs = images.flatMap((image) => [START, ...image.subarray(0, LENGTH - 1)]);
  const targets = images.flatMap((image) => Array.from(image));
  return {inputs, targets, counted: targets.map(() => 1)};
}

const modelOf = (kind, sizes, maxLength) =>
  tfla.models.transformer({vocabSize: 257, position: 'learned', maxLength, seed: 1, ...sizes, ...kind});

/** Mean bits per pixel over held-out images. */
function bitsPerDimension(model) {
  let sum = 0;
  const images = held.slice(0, quick ? 16 : held.length);
  for (let i = 0; i < images.length; i += ROWS) {
    const some = images.slice(i, i + ROWS);
    sum += test(model, batchOf(some), [some.length, LENGTH]).loss * some.length;
  }
  return sum / images.length / Math.LN2;
}

const trained = (name) =>
  once(['train', name, SIDE, STEPS, RATE, SIZES.numLayers], async () => {
    const model = modelOf(KINDS[name], SIZES, LENGTH);
    const rng = generator(1);
    const points = [];
    let [sum, count] = [0, 0];
    const every = Math.max(1, Math.floor(STEPS / 20));
    const seconds = await trainOn(model, {
      ...{rows: ROWS, length: LENGTH, steps: STEPS, learningRate: RATE, every: 1},
      batch: () => batchOf(Array.from({length: ROWS}, () => train[rng.below(train.length)])),
      onEvery: ({step, loss}) => {
        sum += loss;
        count += 1;
        if (step % every !== 0 && step !== STEPS) return;
        points.push([step, sum / count / Math.LN2]);
        log(`${name}: step ${step}, ${(sum / count / Math.LN2).toFixed(3)} bits per dimension`);
        [sum, count] = [0, 0];
      },
    });
    const bits = bitsPerDimension(model);
    model.dispose();
    log(`${name}: ${bits.toFixed(3)} bits per dimension, held out`);
    return {bits, seconds, points};
  });

/** The paper's model. */
const [PIXELS, PAPER] = quick
  ? [49, {dModel: 16, numLayers: 1, numHeads: 2}]
  : [784, {dModel: 256, numLayers: 8, numHeads: 8}];
/** Images that are generated side by side. */
const BATCH = 8;

/** Images per second of processor time, token by token. */
function streamed(model) {
  const stream = tfla.generation.stream(model, {batchSize: BATCH});
  let tokens = Array(BATCH).fill(START);
  let began = 0;
  for (let i = 0; i < PIXELS; i++) {
    if (i === 1) began = cpuSeconds(); // the first step warms up
    const logits = stream.step(tokens);
    const next = tf.tidy(() => tf.argMax(logits, 1).dataSync());
    logits.dispose();
    tokens = Array.from(next, (id) => Math.min(id, 255));
  }
  stream.dispose();
  return (BATCH * (PIXELS - 1)) / PIXELS / (cpuSeconds() - began);
}

/** The same with the model run over the whole prefix for each pixel: measured at some lengths, and added up. */
function recomputed(model) {
  const lengths = Array.from({length: 9}, (_, i) => Math.max(1, Math.round((i * PIXELS) / 8)));
  const run = (length) => {
    const ids = tf.zeros([BATCH, length], 'int32');
    const began = cpuSeconds();
    tf.tidy(() => tf.argMax(tf.slice(model.apply(ids), [0, length - 1, 0], [-1, 1, -1]), 2).dataSync());
    ids.dispose();
    return cpuSeconds() - began;
  };
  run(lengths[1]);
  const seconds = lengths.map(run);
  const all = seconds
    .slice(1)
    .reduce((sum, s, i) => sum + ((s + seconds[i]) / 2) * (lengths[i + 1] - lengths[i]), 0);
  return BATCH / all;
}

const WAYS = {
  'linear (elu)': [KINDS['linear, elu'], streamed],
  'softmax, key-value cache': [KINDS.softmax, streamed],
  'softmax, recomputed': [KINDS.softmax, recomputed],
};
const OF_PAPER = {
  'linear (elu)': ['142.8', ''],
  'softmax, key-value cache': ['7.56', '18.9x'],
  'softmax, recomputed': ['0.45', '317x'],
};
const speed = (way) =>
  once(['speed', way, PIXELS, BATCH], () => {
    const [kind, measure] = WAYS[way];
    const model = modelOf(kind, PAPER, PIXELS);
    const rate = measure(model);
    model.dispose();
    log(`${way}: ${rate.toPrecision(3)} images per second`);
    return rate;
  });

const quality = {};
const speeds = {};
const digits = (x) => x.toPrecision(3);
function write(done) {
  publish(
    'MNIST, pixel by pixel',
    [
      `## Quality\n\n${SIDE} x ${SIDE} pixels of 256 grey levels, ${LENGTH} steps an image; ${SIZES.numLayers} layers of size ${SIZES.dModel}, ${SIZES.numHeads} heads, ${STEPS} steps of ${ROWS} images at rate ${RATE} (${STEPS * ROWS} images seen), one seed; ${train.length} images to train on, ${held.length} held out.`,
      table(
        ['', 'bits per dimension, held out', 'processor seconds of training', 'paper: bits per dimension'],
        Object.entries(quality).map(([name, {bits, seconds}]) => [
          name,
          bits.toFixed(3),
          seconds.toFixed(0),
          {softmax: '0.621', 'linear, elu': '0.644'}[name] ?? '',
        ]),
      ),
      'The paper trains on 784 pixels, 8 layers, 8 heads of 32, 250 epochs of 60,000 images on a GPU, and models a pixel by a mixture of logistics; where images are smaller, each pixel is a mean over several and costs more bits. Only the order of the two kinds can be compared.',
      ...(Object.keys(speeds).length === 0
        ? []
        : [
            `## Speed\n\nImages of ${PIXELS} pixels from a model of ${PAPER.numLayers} layers of size ${PAPER.dModel}, ${PAPER.numHeads} heads, as in the paper, not trained; ${BATCH} images side by side. Seconds are processor time of one thread. Recomputed softmax is measured at nine lengths and added up.`,
            table(
              [
                '',
                'images per second',
                'linear is faster',
                'paper: images per second',
                'paper: linear is faster',
              ],
              Object.entries(speeds).map(([way, rate]) => [
                way,
                digits(rate),
                way.startsWith('linear') ? '' : `${digits(speeds['linear (elu)'] / rate)}x`,
                ...OF_PAPER[way],
              ]),
            ),
          ]),
    ],
    {
      loss: linePlot({
        title: `MNIST ${SIDE} x ${SIDE}: training loss`,
        x: {title: 'step', include: [0]},
        y: {title: 'bits per dimension'},
        series: Object.entries(quality).map(([name, {points}]) => ({
          name,
          points,
          dashed: name === 'softmax',
        })),
      }),
    },
    done,
  );
}
for (const name of Object.keys(KINDS)) {
  quality[name] = await trained(name);
  write(false);
}
for (const way of Object.keys(WAYS)) {
  speeds[way] = await speed(way);
  write(false);
}
write(true);
