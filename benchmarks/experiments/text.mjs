/**
 * Text: bits per character against parameters and against training time, per feature map and for softmax, on Moby-Dick
 * (the last 5 % are held out).
 *
 *     node benchmarks/experiments/text.mjs [--quick] [--steps 500] [--maps elu,taylor2] [--sizes 64,128]
 */
import {mobyDick} from '../../examples/node/moby_dick.mjs';
import {start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';

const {tfla, quick, values, log, finish} = await start('text', {
  options: {steps: {type: 'string'}, maps: {type: 'string'}, sizes: {type: 'string'}},
});
const {featureMaps, models, training} = tfla;
const STEPS = Number(values.steps ?? (quick ? 10 : 500));
const SIZES = (values.sizes ?? (quick ? '32' : '64,128')).split(',').map(Number);
const [BATCH, LENGTH] = quick ? [4, 32] : [8, 128];
const ALL = {
  softmax: {attention: 'softmax'},
  elu: {featureMap: 'elu'},
  relu: {featureMap: 'relu'},
  squaredRelu: {featureMap: 'squaredRelu'},
  exp: {featureMap: 'exp'},
  dpfp: {featureMap: featureMaps.dpfp({nu: 2})},
  cosFormer: {featureMap: featureMaps.cosFormer({maxLength: 256})},
  hedgehog: {featureMap: 'hedgehog'},
  'hedgehog, softmax form': {featureMap: featureMaps.hedgehog({form: 'softmax'})},
  favor: {featureMap: 'favor'},
  taylor2: {featureMap: 'taylor2'},
  rebased: {featureMap: 'rebased'},
};
const names =
  values.maps === undefined
    ? quick
      ? ['softmax', 'elu', 'taylor2']
      : Object.keys(ALL)
    : values.maps.split(',');

const text = mobyDick();
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);
const cut = Math.floor(ids.length * 0.95);
const [train, held] = [ids.slice(0, cut), ids.slice(cut)];

const rows = [];
const curves = [];
for (const dModel of SIZES) {
  for (const name of names) {
    const model = models.transformer({
      vocabSize: tokenizer.vocabSize,
      dModel,
      numLayers: 2,
      numHeads: dModel / 16,
      seed: 1,
      ...ALL[name],
    });
    const points = [];
    const began = performance.now();
    const result = await training.train(
      model,
      {train, validation: held},
      {
        ...{
          steps: STEPS,
          batchSize: BATCH,
          length: LENGTH,
          learningRate: 4e-3,
          seed: 1,
          every: Math.max(1, Math.floor(STEPS / 10)),
        },
        onProgress: ({validation, events}) => {
          if (events.some(({kind}) => kind === 'validation'))
            points.push([(performance.now() - began) / 1000, validation.bitsPerCharacter]);
        },
      },
    );
    const seconds = (STEPS * BATCH * LENGTH) / result.tokensPerSecond;
    rows.push([
      name,
      dModel,
      model.countParams(),
      result.validation.bitsPerCharacter.toFixed(3),
      seconds.toFixed(0),
      Math.round(result.tokensPerSecond),
    ]);
    if (dModel === SIZES.at(-1)) curves.push({name, points});
    log(
      `${name}, size ${dModel}: ${result.validation.bitsPerCharacter.toFixed(3)} bits per character, ${Math.round(result.tokensPerSecond)} tokens/s`,
    );
    model.dispose();
  }
}
finish(
  'Text: bits per character',
  [
    `Moby-Dick by characters (${tokenizer.vocabSize} kinds); 2 layers, heads of 16, rotary positions, ${STEPS} steps of ${BATCH} x ${LENGTH} tokens, AdamW at 4e-3, one seed. Held out: the last 5 %.`,
    table(
      [
        'attention',
        'model size',
        'parameters',
        'bits per character, held out',
        'seconds of training',
        'tokens per second',
      ],
      rows,
    ),
  ],
  {
    time: linePlot({
      title: `Held-out bits per character against time (model size ${SIZES.at(-1)})`,
      x: {title: 'seconds, measuring included', include: [0]},
      y: {title: 'bits per character'},
      series: curves,
    }),
  },
);
