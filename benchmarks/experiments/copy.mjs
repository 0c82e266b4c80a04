/**
 * The copy task of Katharopoulos et al. 2020 (https://arxiv.org/abs/2006.16236, section 4.1): sequences of 10 symbols,
 * length 128, whose second half repeats the first, after a separator; 4 layers and 8 heads. The paper's figure 2: linear
 * attention reaches softmax's loss. The loss here counts the second half only, whose best value is 0. Linear attention, which
 * needs more steps, is trained for as many steps as softmax and for --long ones.
 *
 *     node benchmarks/experiments/copy.mjs [--quick] [--steps 600] [--long 1500] [--seeds 1,2,3] [--length 64] [--backend node]
 */
import {generator, mean, start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';
import {test, trainOn} from './lib/train.mjs';

const {tfla, quick, values, log, once, publish} = await start('copy', {
  options: {
    steps: {type: 'string'},
    long: {type: 'string'},
    seeds: {type: 'string'},
    length: {type: 'string'},
    maps: {type: 'string'},
    rate: {type: 'string'},
  },
});
const LENGTH = Number(values.length ?? (quick ? 16 : 64));
const STEPS = Number(values.steps ?? (quick ? 30 : 600));
const LONG = Number(values.long ?? (quick ? 60 : 1500));
const RATE = Number(values.rate ?? 0.002);
const SEEDS = (values.seeds ?? (quick ? '1' : '1,2,3')).split(',').map(Number);
const SIZES = quick ? {dModel: 32, numLayers: 1, numHeads: 2} : {dModel: 64, numLayers: 4, numHeads: 8};
const ROWS = 16;
const SYMBOLS = 10;
const maps = (values.maps ?? 'elu').split(',');
const KINDS = Object.fromEntries([
  [`softmax, ${STEPS} steps`, {attention: 'softmax', steps: STEPS}],
  ...[STEPS, LONG].flatMap((steps) =>
    maps.map((featureMap) => [`linear (${featureMap}), ${steps} steps`, {featureMap, steps}]),
  ),
]);

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

const run = (name, seed) =>
  once([name, seed, LENGTH, RATE], async () => {
    const {steps, ...kind} = KINDS[name];
    const model = tfla.models.transformer({
      vocabSize: SYMBOLS + 1,
      position: 'learned',
      maxLength: LENGTH,
      seed,
      ...SIZES,
      ...kind,
    });
    const rng = generator(1000 + seed);
    const curve = [];
    const seconds = await trainOn(model, {
      ...{rows: ROWS, length: LENGTH, steps, learningRate: RATE},
      batch: () => batch(rng),
      every: Math.max(1, Math.floor(steps / 30)),
      onEvery: ({step, loss}) => {
        curve.push([step, loss]);
        log(`${name}, seed ${seed}: step ${step}, loss ${loss.toFixed(4)}`);
      },
    });
    const {loss, accuracy} = test(model, batch(generator(9)), [ROWS, LENGTH]);
    model.dispose();
    return {loss, accuracy, seconds, curve};
  });

const results = Object.fromEntries(Object.keys(KINDS).map((name) => [name, []]));
const percents = (list) => list.map(({accuracy}) => `${(100 * accuracy).toFixed(2)} %`).join(', ');

function write(done) {
  const measured = Object.entries(results).filter(([, runs]) => runs.length > 0);
  publish(
    'The copy task',
    [
      `Length ${LENGTH}, ${SYMBOLS} symbols, ${SIZES.numLayers} layers, ${SIZES.numHeads} heads, model size ${SIZES.dModel}, learned positions, ${ROWS} sequences a step, AdamW at ${RATE} with warm-up and cosine decay; seeds ${SEEDS.join(', ')}. Guessing costs ln ${SYMBOLS} = ${Math.log(SYMBOLS).toFixed(3)} nats.`,
      table(
        [
          'attention',
          'loss on new sequences, nats per copied symbol, by seed',
          'right symbols, by seed',
          'processor seconds a run',
        ],
        measured.map(([name, runs]) => [
          name,
          runs.map(({loss}) => loss.toFixed(4)).join(', '),
          percents(runs),
          mean(runs.map(({seconds}) => seconds)).toFixed(0),
        ]),
      ),
      'Paper, figure 2: linear attention converges to the loss of softmax attention, while LSH attention does not (batches of 64, some thousand updates).',
    ],
    {
      loss: linePlot({
        title: `Copy task, length ${LENGTH}: training loss by seed`,
        x: {title: 'step', include: [0]},
        y: {title: 'nats per copied symbol', include: [0]},
        series: measured.flatMap(([name, runs]) =>
          runs.map(({curve}, i) => ({
            name: `${name}, seed ${SEEDS[i]}`,
            points: curve,
            dashed: name.startsWith('softmax'),
          })),
        ),
      }),
    },
    done,
  );
}
// Seed by seed and the long ones last, so that a run that is stopped has compared the kinds.
const order = (long) => Object.keys(KINDS).filter((name) => (KINDS[name].steps === LONG) === long);
for (const long of [false, true]) {
  for (const [seed, name] of SEEDS.flatMap((one) => order(long).map((kind) => [one, kind]))) {
    results[name].push(await run(name, seed));
    write(false);
  }
}
write(true);
