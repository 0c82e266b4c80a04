/**
 * From softmax to linear attention: a softmax model of Moby-Dick is trained, converted per feature map, its maps fitted to
 * the softmax weights (attention transfer), and fine-tuned; perplexity on held-out text after each stage. Beside it what
 * the same number of further steps gives softmax itself, what fine-tuning gives without the fitting, and linear models
 * trained from the start for as many steps as softmax and fine-tuning together.
 *
 *     node benchmarks/experiments/convert.mjs [--quick] [--steps 900] [--backend node]
 */
import {mobyDick} from '../../examples/node/moby_dick.mjs';
import {start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';

const {tfla, quick, values, log, once, publish} = await start('convert', {
  options: {steps: {type: 'string'}},
});
const {featureMaps, models, training} = tfla;
const STEPS = Number(values.steps ?? (quick ? 10 : 900));
const DISTILL = Math.ceil(STEPS / 3);
const TUNE = Math.ceil(STEPS / 3);
const [RATE, TUNE_RATE] = [5e-3, 2e-3];
const [BATCH, LENGTH] = quick ? [4, 32] : [4, 128];
const SIZES = quick ? {dModel: 32, numLayers: 2, numHeads: 2} : {dModel: 64, numLayers: 2, numHeads: 4};

const text = mobyDick();
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);
const cut = Math.floor(ids.length * 0.95);
const data = {train: ids.slice(0, cut), validation: ids.slice(cut, quick ? cut + 2000 : undefined)};
const common = {batchSize: BATCH, length: LENGTH, seed: 1};
const make = (kind) => models.transformer({vocabSize: tokenizer.vocabSize, seed: 1, ...SIZES, ...kind});
const train = (model, steps, learningRate, seed = 1) =>
  training.train(model, data, {...common, steps, learningRate, every: steps, seed});

/** The trained softmax model, made when it is first needed. */
let made;
const softmax = () => {
  made ??= (async () => {
    const model = make({attention: 'softmax'});
    await train(model, STEPS, RATE);
    log('softmax is trained');
    return model;
  })();
  return made;
};

const WAYS = {
  hedgehog: {featureMap: featureMaps.hedgehog()},
  'hedgehog, not distilled': {featureMap: featureMaps.hedgehog(), distill: false},
  'hedgehog (softmax form)': {featureMap: featureMaps.hedgehog({form: 'softmax'})},
  'hedgehog, first layer only': {featureMap: featureMaps.hedgehog(), layers: ['block_0_attention']},
  rebased: {featureMap: featureMaps.rebased()},
  taylor2: {featureMap: featureMaps.taylor2()},
  exp: {featureMap: featureMaps.exp()},
  elu: {featureMap: featureMaps.elu()},
};
const FRESH = quick ? ['elu'] : ['elu', 'exp', 'hedgehog'];
const STAGES = ['softmax', 'converted', 'distilled', 'fine-tuned'];

const convert = (name) =>
  once([name, STEPS, DISTILL, TUNE, RATE, TUNE_RATE], async () => {
    const {model, stages, distilled} = await training.linearize(await softmax(), data, {
      ...common,
      distill: {steps: DISTILL, length: Math.min(64, LENGTH)},
      ...WAYS[name],
      // Other batches than those that softmax was trained on.
      fineTune: {steps: TUNE, learningRate: TUNE_RATE, every: TUNE, seed: 2},
      onStage: ({stage, perplexity}) => log(`${name}: ${stage}, perplexity ${perplexity.toFixed(3)}`),
    });
    model.dispose();
    return {stages, distilled};
  });

const results = {};
const controls = {};
function write(done) {
  const at = (name, stage) => results[name].stages.find((report) => report.stage === stage);
  const rows = Object.keys(results).map((name) => [
    name,
    ...STAGES.map((stage) => at(name, stage)?.perplexity.toFixed(3) ?? '-'),
    at(name, 'fine-tuned').lost.toFixed(3),
    results[name].distilled
      ?.map(({before, after}) => `${before.toFixed(3)} to ${after.toFixed(3)}`)
      .join('; ') ?? '-',
  ]);
  publish(
    'From softmax to linear attention',
    [
      `Moby-Dick by characters, ${SIZES.numLayers} layers of size ${SIZES.dModel}, ${SIZES.numHeads} heads; softmax trained for ${STEPS} steps of ${BATCH} x ${LENGTH} tokens at ${RATE}, maps distilled for ${DISTILL} steps, all weights fine-tuned for ${TUNE} at ${TUNE_RATE}; one seed. Perplexity per character on the held-out last 5 %; elu, exp and taylor2 have no weights to distil.`,
      table(
        [
          'feature map',
          ...STAGES,
          'bits per character lost in the end',
          'divergence from the softmax weights, nats, per layer',
        ],
        rows,
      ),
      ...(Object.keys(controls).length === 0
        ? []
        : [
            `What to compare with:\n\n${table(
              ['model', 'perplexity'],
              Object.entries(controls).map(([name, {perplexity}]) => [name, perplexity.toFixed(3)]),
            )}`,
          ]),
    ],
    {
      stages: linePlot({
        title: 'Bits by stage: 0 softmax, 1 converted, 2 distilled, 3 fine-tuned',
        x: {title: 'stage', include: [0, 3]},
        y: {title: 'bits per character, held out'},
        series: Object.entries(results).map(([name, {stages}]) => ({
          name,
          points: stages.map(({stage, bitsPerCharacter}) => [STAGES.indexOf(stage), bitsPerCharacter]),
        })),
      }),
    },
    done,
  );
}

for (const name of Object.keys(WAYS)) {
  results[name] = await convert(name);
  write(false);
}
for (const name of FRESH) {
  controls[`${name}, trained from the start for ${STEPS + TUNE} steps`] = await once(
    ['fresh', name, STEPS, TUNE, RATE],
    async () => {
      const model = make({featureMap: name});
      const {validation} = await train(model, STEPS + TUNE, RATE);
      model.dispose();
      return validation;
    },
  );
  write(false);
}
// Last, because it changes the softmax model.
controls[`softmax, trained for ${TUNE} more steps as in fine-tuning`] = await once(
  ['more', STEPS, TUNE, RATE, TUNE_RATE],
  async () => (await train(await softmax(), TUNE, TUNE_RATE, 2)).validation,
);
write(true);
