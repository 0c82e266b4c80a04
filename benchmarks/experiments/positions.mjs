/**
 * Positions beyond the training: bits per character of held-out text (Moby-Dick, the last 5 %) in windows of the length that a
 * model was trained on, and by position in windows four times as long, for ways to tell positions.
 *
 *     node benchmarks/experiments/positions.mjs [--quick] [--steps 1200] [--seeds 1,2] [--backend node]
 */
import {mobyDick} from '../../examples/node/moby_dick.mjs';
import {mean, start, table} from './lib/experiment.mjs';

const {tf, tfla, quick, values, log, once, publish} = await start('positions', {
  options: {steps: {type: 'string'}, seeds: {type: 'string'}},
});
const {models, training} = tfla;
const STEPS = Number(values.steps ?? (quick ? 10 : 1200));
const SEEDS = (values.seeds ?? (quick ? '1' : '1,2')).split(',').map(Number);
const [BATCH, LENGTH] = [4, quick ? 32 : 128];
const FACTOR = 4;
const RATE = 0.005;
const SIZE = {dModel: 64, numLayers: 2, numHeads: 4, featureMap: 'exp'};
/** One window as long as the others' batch: the same number of tokens in a step. */
const LONG = {batchSize: 1, length: BATCH * LENGTH};

const KINDS = {
  rotary: {position: 'rotary'},
  [`rotary, trained on ${LONG.batchSize} x ${LONG.length}`]: {position: 'rotary', windows: LONG},
  sinusoidal: {position: 'sinusoidal'},
  none: {position: 'none'},
};

const text = mobyDick();
const tokenizer = models.characterTokenizer(text);
const {vocabSize} = tokenizer;
const ids = tokenizer.encode(text);
const cut = Math.floor(ids.length * 0.95);
const [train, held] = [ids.slice(0, cut), ids.slice(cut, quick ? cut + 2000 : undefined)];

/** Mean bits at each position of windows of that length. */
function bitsByPosition(model, length) {
  const count = Math.floor((held.length - 1) / length);
  const sums = new Float64Array(length);
  const atOnce = Math.max(1, Math.floor((BATCH * FACTOR * LENGTH) / length));
  for (let first = 0; first < count; first += atOnce) {
    const rows = Math.min(atOnce, count - first);
    const from = first * length;
    const losses = tf.tidy(() => {
      const part = (shift) => held.slice(from + shift, from + shift + rows * length);
      const logits = model.predict(tf.tensor2d(part(0), [rows, length], 'int32'));
      const targets = tf.oneHot(tf.tensor2d(part(1), [rows, length], 'int32'), vocabSize);
      return tf.neg(tf.sum(tf.mul(tf.logSoftmax(logits), targets), -1)).dataSync();
    });
    losses.forEach((loss, i) => {
      sums[i % length] += loss / Math.LN2 / count;
    });
  }
  return sums;
}

/** [bits in windows of LENGTH, in their second halves, then in each quarter of longer ones]. */
const run = (name, seed) =>
  once([name, seed, STEPS, BATCH, LENGTH], async () => {
    const {windows = {batchSize: BATCH, length: LENGTH}, ...position} = KINDS[name];
    const model = models.transformer({vocabSize, ...SIZE, ...position, seed});
    await training.train(model, train, {...windows, steps: STEPS, learningRate: RATE, seed});
    const long = bitsByPosition(model, FACTOR * LENGTH);
    const quarters = Array.from({length: FACTOR}, (_, i) =>
      mean([...long.subarray(i * LENGTH, (i + 1) * LENGTH)]),
    );
    const short = [...bitsByPosition(model, LENGTH)];
    const bits = [mean(short), mean(short.slice(LENGTH / 2)), ...quarters];
    model.dispose();
    log(`${name}, seed ${seed}: ${bits.map((x) => x.toFixed(3)).join(' ')}`);
    return bits;
  });

const measured = new Map(Object.keys(KINDS).map((name) => [name, []]));

function write(done) {
  const shown = [...measured].filter(([, runs]) => runs.length > 0);
  const rows = shown.map(([name, runs]) => {
    const first = runs.map(([bits]) => bits);
    const rest = runs.map((bits) => mean(bits.slice(3)));
    return [
      name,
      ...runs[0].map((_, i) => mean(runs.map((bits) => bits[i])).toFixed(3)),
      first.map((bits) => bits.toFixed(3)).join(', '),
      rest.map((bits) => bits.toFixed(3)).join(', '),
    ];
  });
  const quarters = Array.from({length: FACTOR}, (_, i) => `${i * LENGTH} to ${(i + 1) * LENGTH - 1}`);
  publish(
    'Positions beyond the training',
    [
      `Moby-Dick by characters (${vocabSize} kinds); 2 layers of 4 heads of 16, linear attention with exp, ${STEPS} steps of ${BATCH} x ${LENGTH} tokens where nothing else is said, AdamW at ${RATE} with warm-up and cosine decay, seeds ${SEEDS.join(', ')}. Held-out bits per character: in windows of ${LENGTH}, in the second halves of these, and by position in windows of ${FACTOR * LENGTH}; means over the seeds.`,
      table(
        [
          'positions',
          `windows of ${LENGTH}`,
          'their second halves',
          ...quarters,
          `windows of ${LENGTH}, by seed`,
          `from ${LENGTH} on, by seed`,
        ],
        rows,
      ),
    ],
    {},
    done,
  );
}

for (const seed of SEEDS)
  for (const name of Object.keys(KINDS)) {
    measured.get(name).push(await run(name, seed));
    write(false);
  }
write(true);
