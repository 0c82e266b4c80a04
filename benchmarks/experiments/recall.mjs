/**
 * Associative recall against the number of pairs, per feature map: where a fixed state breaks and softmax does not.
 *
 * Two measures. `store`: no training; random keys and values are written into one state and each is asked for with its own
 * key, so this is what the map can keep apart. `learn`: a two-layer transformer is trained on sequences of pairs, one a
 * position, whose keys are then asked for in another order, with 16 to 128 pairs in turns, and tested on new ones.
 *
 *     node benchmarks/experiments/recall.mjs [--quick] [--steps 800] [--maps elu,exp] [--rate 0.004] [--backend node]
 */
import * as tfl from '@tensorflow/tfjs-layers';
import {normal} from '../lib/ours.mjs';
import {generator, mean, start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';
import {test, trainOn} from './lib/train.mjs';

const {tf, tfla, quick, values, log, once, publish} = await start('recall', {
  options: {steps: {type: 'string'}, maps: {type: 'string'}, rate: {type: 'string'}},
});
const {featureMaps, linearAttention, softmaxAttention} = tfla;
const MAPS = {
  elu: () => featureMaps.elu(),
  relu: () => featureMaps.relu(),
  squaredRelu: () => featureMaps.squaredRelu(),
  exp: () => featureMaps.exp(),
  hedgehog: () => featureMaps.hedgehog(),
  'hedgehog (softmax form)': () => featureMaps.hedgehog({form: 'softmax'}),
  'dpfp (nu 2)': () => featureMaps.dpfp({nu: 2}),
  favor: () => featureMaps.favor(),
  taylor2: () => featureMaps.taylor2(),
  rebased: () => featureMaps.rebased(),
};
const names = values.maps?.split(',') ?? ['softmax', ...Object.keys(MAPS)];
const percent = (x) => `${(100 * x).toFixed(0)} %`;
const R = 16;
const features = (name) => (name === 'softmax' ? '' : MAPS[name]().dim(R));

/** What the map's weights start as. */
function initialWeights(map) {
  const declared = map.weights?.(R, 1) ?? [];
  const values = declared.map(({name, shape, initializer}) => [
    name,
    typeof initializer === 'string' ? tf[initializer](shape) : tf.tensor(initializer, shape),
  ]);
  return values.length === 0 ? {} : {featureMapWeights: Object.fromEntries(values)};
}

const attention = (name) => {
  if (name === 'softmax') return softmaxAttention;
  const featureMap = MAPS[name]();
  return (q, k, v) => linearAttention(q, k, v, {featureMap, ...initialWeights(featureMap)});
};

const KINDS = 32;
/** Part of the pairs whose value comes back: keys of length size sqrt(R), values that are one of KINDS unit vectors. */
const stored = (attend, pairs, size, seeds) =>
  mean(
    Array.from({length: seeds}, (_, seed) =>
      tf.tidy(() => {
        const directions = tf.tensor(normal(pairs * R, seed + 1), [1, 1, pairs, R]);
        const keys = tf.mul(tf.div(directions, tf.norm(directions, 2, 3, true)), size * Math.sqrt(R));
        const rng = generator(seed + 1);
        const ids = tf.tensor1d(
          Array.from({length: pairs}, () => rng.below(KINDS)),
          'int32',
        );
        const vectors = tf.reshape(tf.cast(tf.oneHot(ids, KINDS), 'float32'), [1, 1, pairs, KINDS]);
        const output = attend(keys, keys, vectors);
        const right = tf.equal(tf.reshape(tf.argMax(output, -1), [pairs]), ids);
        return tf.mean(tf.cast(right, 'float32')).dataSync()[0];
      }),
    ),
  );

const PAIRS = quick ? [4, 16] : [4, 8, 16, 32, 64, 128, 256];
/** Sizes of the keys; training can choose one, so the best counts. */
const SIZES = [0.5, 1, 2, 4];
const SEEDS = quick ? 2 : 10;
const storedRows = [];
for (const name of names) {
  const attend = attention(name);
  const row = await once(['store', name, PAIRS, SIZES, SEEDS], () =>
    PAIRS.map((pairs) => Math.max(...SIZES.map((size) => stored(attend, pairs, size, SEEDS)))),
  );
  storedRows.push([name, row]);
}
log('store: done');

const STEPS = Number(values.steps ?? (quick ? 20 : 800));
const RATE = Number(values.rate ?? 0.004);
const LEARNED = quick ? [4] : [16, 32, 64, 128];
/** Pairs in one batch, in many sequences of a few or few sequences of many. */
const TOGETHER = quick ? 16 : 256;
const TESTED = 1024;
const KEYS = 256;
const VALUES = 16;

/** Positions (k1, v1), (k2, v2), .. and then k2, k1, ..: the answers of the second part are counted. Ones in KEYS + VALUES places. */
function batch(rng, pairs, together = TOGETHER) {
  const [rows, length, width] = [together / pairs, 2 * pairs, KEYS + VALUES];
  const inputs = new Float32Array(rows * length * width);
  const [targets, counted] = [[], []];
  for (let row = 0; row < rows; row++) {
    const keys = rng.shuffled(KEYS).slice(0, pairs);
    const answers = keys.map(() => rng.below(VALUES));
    [...keys.keys(), ...rng.shuffled(pairs)].forEach((i, at) => {
      const place = (row * length + at) * width;
      inputs[place + keys[i]] = 1;
      if (at < pairs) inputs[place + KEYS + answers[i]] = 1;
      targets.push(answers[i]);
      counted.push(at < pairs ? 0 : 1);
    });
  }
  return {inputs, targets, counted, rows, length};
}

function modelOf(name) {
  const body = tfla.models.transformer({
    ...{inputDim: KEYS + VALUES, dModel: 64, numLayers: 2, numHeads: 64 / R, ffnDim: 128, seed: 1},
    ...{position: 'none', head: 'none'},
    ...(name === 'softmax' ? {attention: 'softmax'} : {featureMap: MAPS[name]()}),
  });
  const kernelInitializer = tfl.initializers.glorotUniform({seed: 2});
  const head = tfl.layers.dense({units: VALUES, kernelInitializer});
  return tfl.model({inputs: body.inputs, outputs: head.apply(body.outputs[0])});
}

const learned = (name) =>
  once(['learn', name, STEPS, RATE, LEARNED, TOGETHER], async () => {
    const model = modelOf(name);
    const rng = generator(5);
    const seconds = await trainOn(model, {
      steps: STEPS,
      learningRate: RATE,
      batch: (step) => batch(rng, LEARNED[step % LEARNED.length]),
      every: Math.ceil(STEPS / 5 / LEARNED.length) * LEARNED.length,
      onEvery: ({step, loss}) =>
        log(`learn: ${name}, step ${step}, loss ${loss.toFixed(3)} (the last number of pairs)`),
    });
    const row = LEARNED.map((pairs) => {
      const asked = batch(generator(77), pairs, TESTED);
      return test(model, asked, [asked.rows, asked.length]).accuracy;
    });
    model.dispose();
    log(`learn: ${name} ${row.map(percent).join(' ')}`);
    return {row, seconds};
  });

const tableOf = (pairs, rows) =>
  table(
    ['attention', "features r'", ...pairs.map((n) => `${n} pairs`)],
    rows.map(([name, row]) => [name, features(name), ...row.map(percent)]),
  );
const plot = (title, pairs, rows) =>
  linePlot({
    title,
    x: {title: 'pairs', log: 2},
    y: {title: 'part of right answers', include: [0, 1]},
    series: rows.map(([name, row]) => ({
      name,
      points: row.map((accuracy, i) => [pairs[i], accuracy]),
      dashed: name === 'softmax',
    })),
  });

const learnedRows = [];
function write(done) {
  publish(
    'Associative recall',
    [
      `## Store\n\nNo training: keys of random directions, r = ${R}, one of ${KINDS} values each; the state is asked with each key. Keys have the length size x sqrt(r), and the size of ${SIZES.join(', ')} that is best for the kind and the number of pairs counts: a model can learn to scale its queries and keys. Mean of ${SEEDS} draws. Guessing gives ${percent(1 / KINDS)}. Learned maps have their initial weights.`,
      tableOf(PAIRS, storedRows),
      `## Learn\n\nTwo layers of size 64, 4 heads (r = ${R}), no positions; a key and its value stand at one position as ones in a vector, then each key alone. ${STEPS} steps of ${TOGETHER} pairs at rate ${RATE}, new sequences each step, of ${LEARNED.join(', ')} pairs in turns; ${KEYS} keys, ${VALUES} values; one seed. Tested on ${TESTED} new questions each. Guessing gives ${percent(1 / VALUES)}. A model that fails here has either no room in its state or not learned the lookup in ${STEPS} steps; the first table tells which is likely.`,
      tableOf(LEARNED, learnedRows),
    ],
    {
      store: plot(`Recall from one state, without training (r = ${R})`, PAIRS, storedRows),
      ...(learnedRows.length === 0
        ? {}
        : {learn: plot(`Recall after training (2 layers, r = ${R})`, LEARNED, learnedRows)}),
    },
    done,
  );
}
for (const name of names) {
  write(false);
  learnedRows.push([name, (await learned(name)).row]);
}
write(true);
