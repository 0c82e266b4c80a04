/**
 * From softmax to linear attention: a softmax model of Moby-Dick is trained, converted per feature map, its maps fitted to
 * the softmax weights (attention transfer), and fine-tuned; perplexity on held-out text after each stage. The last row is
 * a linear model trained from the start for as many steps as softmax and fine-tuning together.
 *
 *     node benchmarks/experiments/convert.mjs [--quick] [--steps 600]
 */
import {mobyDick} from '../../examples/node/moby_dick.mjs';
import {start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';

const {tfla, quick, values, log, finish} = await start('convert', {options: {steps: {type: 'string'}}});
const {featureMaps, models, training} = tfla;
const STEPS = Number(values.steps ?? (quick ? 10 : 600));
const DISTILL = Math.ceil(STEPS / 3);
const TUNE = Math.ceil(STEPS / 3);
const [BATCH, LENGTH] = quick ? [4, 32] : [8, 128];
const SIZES = quick ? {dModel: 32, numLayers: 2, numHeads: 2} : {dModel: 64, numLayers: 2, numHeads: 4};

const text = mobyDick();
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);
const cut = Math.floor(ids.length * 0.95);
const data = {train: ids.slice(0, cut), validation: ids.slice(cut, quick ? cut + 2000 : undefined)};
const common = {batchSize: BATCH, length: LENGTH, seed: 1};
const make = (kind) => models.transformer({vocabSize: tokenizer.vocabSize, seed: 1, ...SIZES, ...kind});

const softmax = make({attention: 'softmax'});
await training.train(softmax, data, {steps: STEPS, learningRate: 4e-3, every: STEPS, ...common});
log('softmax is trained');

const WAYS = {
  hedgehog: {featureMap: 'hedgehog'},
  'hedgehog, softmax form': {featureMap: featureMaps.hedgehog({form: 'softmax'})},
  'hedgehog, first layer only': {featureMap: 'hedgehog', layers: ['block_0_attention']},
  rebased: {featureMap: 'rebased'},
  elu: {featureMap: 'elu'},
  taylor2: {featureMap: 'taylor2'},
};
const STAGES = ['softmax', 'converted', 'distilled', 'fine-tuned'];
const rows = [];
const series = [];
for (const [name, way] of Object.entries(WAYS)) {
  const {model, stages, distilled} = await training.linearize(softmax, data, {
    ...common,
    ...way,
    distill: {steps: DISTILL, length: Math.min(64, LENGTH)},
    fineTune: {steps: TUNE, learningRate: 1e-3, every: TUNE},
    onStage: ({stage, perplexity}) => log(`${name}: ${stage}, perplexity ${perplexity.toFixed(3)}`),
  });
  model.dispose();
  const at = (stage) => stages.find((report) => report.stage === stage);
  rows.push([
    name,
    ...STAGES.map((stage) => at(stage)?.perplexity.toFixed(3) ?? '-'),
    at('fine-tuned').lost.toFixed(3),
    distilled === null
      ? '-'
      : distilled.map(({before, after}) => `${before.toFixed(3)} to ${after.toFixed(3)}`).join('; '),
  ]);
  series.push({
    name,
    points: stages.map(({stage, bitsPerCharacter}) => [STAGES.indexOf(stage), bitsPerCharacter]),
  });
}
const fresh = make({featureMap: 'elu'});
const {validation} = await training.train(fresh, data, {
  steps: STEPS + TUNE,
  learningRate: 4e-3,
  every: STEPS + TUNE,
  ...common,
});
finish(
  'From softmax to linear attention',
  [
    `Moby-Dick by characters, ${SIZES.numLayers} layers of size ${SIZES.dModel}, ${SIZES.numHeads} heads; softmax trained for ${STEPS} steps of ${BATCH} x ${LENGTH} tokens, maps distilled for ${DISTILL} steps, all weights fine-tuned for ${TUNE}. Perplexity per character on the held-out last 5 %.`,
    table(
      [
        'feature map',
        ...STAGES,
        'bits per character lost in the end',
        'divergence from the softmax weights, nats, per layer',
      ],
      rows,
    ),
    `A linear model (elu) trained from the start for ${STEPS + TUNE} steps: perplexity ${validation.perplexity.toFixed(3)}.`,
  ],
  {
    stages: linePlot({
      title: 'Held-out bits per character by stage (0 softmax, 1 converted, 2 distilled, 3 fine-tuned)',
      x: {title: 'stage', include: [0, 3]},
      y: {title: 'bits per character'},
      series,
    }),
  },
);
