/**
 * Associative recall against the number of pairs, per feature map: where a fixed state breaks and softmax does not.
 *
 * Two measures. `store`: no training; random keys and values are written into one state and each is asked for with its own
 * key, so this is what the map can keep apart. `learn`: a two-layer transformer is trained on sequences of pairs that are
 * then asked for in another order, and tested on new ones.
 *
 *     node benchmarks/experiments/recall.mjs [--quick] [--steps 800]
 */
import {normal} from '../lib/ours.mjs';
import {generator, mean, start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';
import {test, trainOn} from './lib/train.mjs';

const {tf, tfla, quick, values, log, finish} = await start('recall', {options: {steps: {type: 'string'}}});
const {featureMaps, linearAttention, softmaxAttention} = tfla;
const MAPS = {
  elu: () => featureMaps.elu(),
  relu: () => featureMaps.relu(),
  squaredRelu: () => featureMaps.squaredRelu(),
  exp: () => featureMaps.exp(),
  'dpfp, nu 3': () => featureMaps.dpfp({nu: 3}),
  taylor2: () => featureMaps.taylor2(),
  'favor, m 64': () => featureMaps.favor({numFeatures: 64}),
  hedgehog: () => featureMaps.hedgehog(),
};
const percent = (x) => `${(100 * x).toFixed(0)} %`;

/** Part of the pairs whose value comes back, from keys N(0,1) with r = 16 and values that are one of 32 unit vectors. */
function stored(attend, pairs, seeds) {
  const [r, kinds] = [16, 32];
  return mean(
    Array.from({length: seeds}, (_, seed) =>
      tf.tidy(() => {
        const keys = tf.tensor(normal(pairs * r, seed + 1), [1, 1, pairs, r]);
        const rng = generator(seed + 1);
        const ids = tf.tensor1d(
          Array.from({length: pairs}, () => rng.below(kinds)),
          'int32',
        );
        const output = attend(
          keys,
          tf.reshape(tf.cast(tf.oneHot(ids, kinds), 'float32'), [1, 1, pairs, kinds]),
          r,
        );
        const right = tf.equal(tf.reshape(tf.argMax(output, -1), [pairs]), ids);
        return tf.mean(tf.cast(right, 'float32')).dataSync()[0];
      }),
    ),
  );
}

const identityWeights = (map, r) => {
  const declared = map.weights?.(r, 1) ?? [];
  const trainable = declared.filter((weight) => weight.trainable);
  return trainable.length === 0
    ? {}
    : {
        featureMapWeights: Object.fromEntries(
          declared.map(({name, shape, initializer}) => [
            name,
            typeof initializer === 'string' ? tf.zeros(shape) : tf.tensor(initializer, shape),
          ]),
        ),
      };
};

const PAIRS = quick ? [4, 16] : [4, 8, 16, 32, 64, 128, 256];
const storing = {softmax: (keys, v) => softmaxAttention(keys, keys, v)};
for (const [name, make] of Object.entries(MAPS)) {
  const map = make();
  storing[name] = (keys, v, r) =>
    linearAttention(keys, keys, v, {featureMap: map, ...identityWeights(map, r)});
}
const storedRows = Object.entries(storing).map(([name, attend]) => [
  name,
  PAIRS.map((pairs) => stored(attend, pairs, quick ? 2 : 10)),
]);
log('store: done');

const STEPS = Number(values.steps ?? (quick ? 20 : 800));
const LEARNED = quick ? [4] : [4, 8, 16, 32];
const ROWS = 32;
const KEYS = 40;
const VALUES = 8;

/** `k1 v1 k2 v2 .. | k3 v3 k1 v1 ..`: the values of the second part are counted. */
function batch(rng, pairs) {
  const [inputs, targets, counted] = [[], [], []];
  for (let row = 0; row < ROWS; row++) {
    const keys = rng.shuffled(KEYS).slice(0, pairs);
    const answer = keys.map(() => rng.below(VALUES));
    const said = keys.flatMap((key, i) => [VALUES + key, answer[i]]);
    const asked = rng.shuffled(pairs).flatMap((i) => [VALUES + keys[i], answer[i]]);
    const whole = [...said, ...asked];
    inputs.push(...whole.slice(0, -1));
    targets.push(...whole.slice(1));
    for (let i = 0; i < whole.length - 1; i++) counted.push(i >= said.length && i % 2 === 0 ? 1 : 0);
  }
  return {inputs, targets, counted};
}

async function learned(kind, pairs) {
  const length = 4 * pairs - 1;
  const model = tfla.models.transformer({
    vocabSize: VALUES + KEYS,
    dModel: 64,
    numLayers: 2,
    numHeads: 4,
    ffnDim: 128,
    seed: 1,
    ...kind,
  });
  const rng = generator(pairs);
  await trainOn(model, {
    rows: ROWS,
    length,
    steps: STEPS,
    learningRate: 4e-3,
    batch: () => batch(rng, pairs),
  });
  const {accuracy} = test(model, batch(generator(77), pairs), [ROWS, length]);
  model.dispose();
  return accuracy;
}

const kinds = {
  softmax: {attention: 'softmax'},
  ...Object.fromEntries(Object.entries(MAPS).map(([name, make]) => [name, {featureMap: make()}])),
};
const learnedRows = [];
for (const [name, kind] of Object.entries(kinds)) {
  const row = [];
  for (const pairs of LEARNED) row.push(await learned(kind, pairs));
  learnedRows.push([name, row]);
  log(`learn: ${name} ${row.map(percent).join(' ')}`);
}
const tableOf = (pairs, rows) =>
  table(
    ['attention', ...pairs.map((n) => `${n} pairs`)],
    rows.map(([name, row]) => [name, ...row.map(percent)]),
  );
const plot = (title, pairs, rows) =>
  linePlot({
    title,
    x: {title: 'pairs', log: 2},
    y: {title: 'part of right answers', include: [0, 1]},
    series: rows.map(([name, row]) => ({name, points: row.map((accuracy, i) => [pairs[i], accuracy])})),
  });
finish(
  'Associative recall',
  [
    `## Store\n\nNo training: random keys of r = 16, one of 32 values each; the state is asked with each key. Guessing gives 3 %. softmax here is softmax attention at its usual scale 1/sqrt(r); what it misses, a larger scale finds, while a state has what it has.`,
    tableOf(PAIRS, storedRows),
    `## Learn\n\nTwo layers of size 64, 4 heads (r = 16), rotary positions; ${STEPS} steps of ${ROWS} sequences, new ones each step; ${KEYS} keys, ${VALUES} values. Guessing gives ${percent(1 / VALUES)}.`,
    tableOf(LEARNED, learnedRows),
  ],
  {
    store: plot('Recall from one state, without training (r = 16)', PAIRS, storedRows),
    learn: plot('Recall after training (2 layers, r = 16)', LEARNED, learnedRows),
  },
);
