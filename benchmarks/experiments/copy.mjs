/**
 * The copy task of Katharopoulos et al. 2020 (https://arxiv.org/abs/2006.16236, section 4.1): sequences of 10 symbols,
 * length 128, whose second half repeats the first, after a separator; 4 layers and 8 heads. The paper's figure 2: linear
 * attention reaches softmax's loss. The loss here counts the second half only, whose best value is 0.
 *
 *     node benchmarks/experiments/copy.mjs [--quick] [--steps 1500] [--seeds 1,2,3]
 */
import {generator, mean, start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';
import {test, trainOn} from './lib/train.mjs';

const {tfla, quick, values, log, finish} = await start('copy', {
  options: {steps: {type: 'string'}, seeds: {type: 'string'}},
});
const LENGTH = quick ? 16 : 128;
const STEPS = Number(values.steps ?? (quick ? 30 : 1500));
const SEEDS = (values.seeds ?? (quick ? '1' : '1,2,3')).split(',').map(Number);
const SIZES = quick ? {dModel: 32, numLayers: 1, numHeads: 2} : {dModel: 64, numLayers: 4, numHeads: 8};
const ROWS = 16;
const SYMBOLS = 10;
const KINDS = {softmax: {attention: 'softmax'}, 'linear, elu': {featureMap: 'elu'}};

/** `0 abc 0 abc`, of which each row is LENGTH inputs and the tokens after them. */
function batch(rng) {
  const half = LENGTH / 2;
  const [inputs, targets, counted] = [[], [], []];
  for (let row = 0; row < ROWS; row++) {
    const text = Array.from({length: half}, () => 1 + rng.below(SYMBOLS));
    const whole = [0, ...text, 0, ...text].slice(0, LENGTH + 1);
    inputs.push(...whole.slice(0, LENGTH));
    targets.push(...whole.slice(1));
    for (let i = 0; i < LENGTH; i++) counted.push(i > half ? 1 : 0);
  }
  return {inputs, targets, counted};
}

const curves = {};
const rows = [];
for (const [name, kind] of Object.entries(KINDS)) {
  const finals = [];
  for (const seed of SEEDS) {
    const model = tfla.models.transformer({
      vocabSize: SYMBOLS + 1,
      position: 'learned',
      maxLength: LENGTH,
      seed,
      ...SIZES,
      ...kind,
    });
    const rng = generator(1000 + seed);
    const began = performance.now();
    const curve = [];
    await trainOn(model, {
      ...{
        rows: ROWS,
        length: LENGTH,
        steps: STEPS,
        learningRate: 2e-3,
        batch: () => batch(rng),
        every: Math.max(1, Math.floor(STEPS / 30)),
      },
      onEvery: ({step, loss}) => {
        curve.push([step, loss]);
        log(`${name}, seed ${seed}: step ${step}, loss ${loss.toFixed(4)}`);
      },
    });
    const {loss, accuracy} = test(model, batch(generator(9)), [ROWS, LENGTH]);
    finals.push({loss, accuracy, minutes: (performance.now() - began) / 60000});
    curves[name] ??= curve.map(([step]) => [step, []]);
    for (const [i, [, value]] of curve.entries()) curves[name][i][1].push(value);
    model.dispose();
  }
  rows.push([
    name,
    finals.map(({loss}) => loss.toFixed(4)).join(', '),
    `${(100 * mean(finals.map(({accuracy}) => accuracy))).toFixed(2)} %`,
    mean(finals.map(({minutes}) => minutes)).toFixed(1),
  ]);
}
finish(
  'The copy task',
  [
    `Length ${LENGTH}, ${SYMBOLS} symbols, ${SIZES.numLayers} layers, ${SIZES.numHeads} heads, model size ${SIZES.dModel}, ${STEPS} steps of ${ROWS} sequences, AdamW at 2e-3 with warm-up and cosine decay; seeds ${SEEDS.join(', ')}. Guessing costs ln 10 = 2.303 nats.`,
    table(
      [
        'attention',
        `loss on new sequences, nats per copied symbol, by seed`,
        'right symbols',
        'minutes of training',
      ],
      rows,
    ),
    'Paper, figure 2: linear attention converges to the loss of softmax attention, while LSH attention does not.',
  ],
  {
    loss: linePlot({
      title: `Copy task, length ${LENGTH}: training loss (mean of ${SEEDS.length} seeds)`,
      x: {title: 'step', include: [0]},
      y: {title: 'nats per copied symbol', include: [0]},
      series: Object.entries(curves).map(([name, points]) => ({
        name,
        points: points.map(([step, losses]) => [step, mean(losses)]),
      })),
    }),
  },
);
