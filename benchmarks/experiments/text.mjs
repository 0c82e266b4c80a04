/**
 * Text: bits per character against parameters and against training time, per feature map and for softmax, on Moby-Dick
 * (the last 5 % are held out). All kinds have the same learning rate; what another rate and another seed change is measured
 * for some of them.
 *
 *     node benchmarks/experiments/text.mjs [--quick] [--steps 1200] [--maps elu,taylor2] [--sizes 32,64,128] [--backend node]
 */
import {mobyDick} from '../../examples/node/moby_dick.mjs';
import {cpuSeconds, start, table} from './lib/experiment.mjs';
import {linePlot} from './lib/plot.mjs';

const {tfla, quick, values, log, once, publish} = await start('text', {
  options: {
    steps: {type: 'string'},
    maps: {type: 'string'},
    sizes: {type: 'string'},
    rates: {type: 'string'},
    tuned: {type: 'string'},
    seeds: {type: 'string'},
  },
});
const {featureMaps, models, training} = tfla;
const STEPS = Number(values.steps ?? (quick ? 10 : 1200));
const SIZES = (values.sizes ?? (quick ? '32' : '32,64')).split(',').map(Number);
const RATES = (values.rates ?? (quick ? '0.004' : '0.005,0.012')).split(',').map(Number);
/** The model size at which rates and seeds are compared. */
const TUNED = Number(values.tuned ?? (quick ? 32 : 64));
const HEAD = 16;
const [BATCH, LENGTH] = quick ? [4, 32] : [4, 128];
const SEEDED = ['softmax', 'elu', 'exp'];
/** Kinds, one of each sort, that are also trained at the other rates. */
const RATED = ['softmax', 'elu', 'exp', 'hedgehog (softmax form)', 'taylor2'];
const SEEDS = (values.seeds ?? (quick ? '2' : '2,3')).split(',').filter(Boolean).map(Number);
const ALL = {
  softmax: {attention: 'softmax'},
  elu: {featureMap: featureMaps.elu()},
  relu: {featureMap: featureMaps.relu()},
  squaredRelu: {featureMap: featureMaps.squaredRelu()},
  exp: {featureMap: featureMaps.exp()},
  hedgehog: {featureMap: featureMaps.hedgehog()},
  'hedgehog (softmax form)': {featureMap: featureMaps.hedgehog({form: 'softmax'})},
  'dpfp (nu 2)': {featureMap: featureMaps.dpfp({nu: 2})},
  cosFormer: {featureMap: featureMaps.cosFormer({maxLength: 256})},
  favor: {featureMap: featureMaps.favor()},
  taylor2: {featureMap: featureMaps.taylor2()},
  rebased: {featureMap: featureMaps.rebased()},
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
const data = {train: ids.slice(0, cut), validation: ids.slice(cut, quick ? cut + 2000 : undefined)};

/** {bits, seconds, parameters, points}: seconds of processor time in training alone, points [seconds, held-out bits]. */
const run = (name, dModel, learningRate, seed) =>
  once([name, dModel, learningRate, seed, STEPS, BATCH, LENGTH], async () => {
    const model = models.transformer({
      vocabSize: tokenizer.vocabSize,
      dModel,
      numLayers: 2,
      numHeads: dModel / HEAD,
      seed,
      ...ALL[name],
    });
    const points = [];
    let [seconds, steps, before] = [0, 0, cpuSeconds()];
    const {validation} = await training.train(model, data, {
      ...{steps: STEPS, batchSize: BATCH, length: LENGTH, learningRate, seed},
      every: Math.max(1, Math.floor(STEPS / 8)),
      onProgress: ({validation, events}) => {
        const now = cpuSeconds();
        const measured = events.some(({kind}) => kind === 'validation');
        // A step that was followed by a measurement counts as much as the others did.
        seconds += measured && steps > 0 ? seconds / steps : now - before;
        steps += 1;
        if (measured) points.push([seconds, validation.bitsPerCharacter]);
        before = cpuSeconds();
      },
    });
    const parameters = model.countParams();
    model.dispose();
    const bits = validation.bitsPerCharacter;
    log(
      `${name}, size ${dModel}, rate ${learningRate}, seed ${seed}: ${bits.toFixed(3)} bits, ${seconds.toFixed(0)} s`,
    );
    return {bits, seconds, parameters, points};
  });

/** What has been measured: {name, dModel, rate, seed, ...run}. */
const results = [];
const measure = async (name, dModel, rate, seed) => {
  results.push({name, dModel, rate, seed, ...(await run(name, dModel, rate, seed))});
  write(false);
};
const found = (wanted) =>
  results.filter((result) => Object.entries(wanted).every(([key, value]) => result[key] === value));
const main = (name, dModel) => found({name, dModel, seed: 1, rate: RATES[0]})[0];

const state = (name) =>
  name === 'softmax' ? `${2 * HEAD} a token` : ALL[name].featureMap.dim(HEAD) * (HEAD + 1);
const bits = (result) => result?.bits.toFixed(3) ?? '';

function write(done) {
  const shown = names.filter((name) => main(name, TUNED) !== undefined);
  const rows = shown.map((name) => {
    const softmax = main('softmax', TUNED);
    const here = main(name, TUNED);
    const more = softmax === undefined || name === 'softmax' ? '' : (here.bits - softmax.bits).toFixed(3);
    return [
      name,
      ...SIZES.map((size) => bits(main(name, size))),
      more && `+${more}`.replace('+-', '-'),
      state(name),
      ...SIZES.map((size) => main(name, size)?.seconds.toFixed(1) ?? ''),
    ];
  });
  const rates = RATED.filter((name) => found({name}).some(({rate}) => rate !== RATES[0])).map((name) => [
    name,
    ...RATES.map((rate) => bits(found({name, dModel: TUNED, seed: 1, rate})[0])),
  ]);
  const seeds = SEEDED.filter((name) => found({name}).some(({seed}) => seed > 1)).map((name) => {
    const all = found({name, dModel: TUNED, rate: RATES[0]});
    const values = all.map((one) => one.bits);
    return [name, all.map(bits).join(', '), (Math.max(...values) - Math.min(...values)).toFixed(3)];
  });
  const parameters = SIZES.map((size) => main(shown[0], size)?.parameters);
  const series = (points) => shown.map((name) => ({name, points: points(name), dashed: name === 'softmax'}));
  const largest = SIZES.filter((size) => main(shown[0], size) !== undefined).at(-1);
  publish(
    'Text: bits per character',
    [
      `Moby-Dick by characters (${tokenizer.vocabSize} kinds); 2 layers, heads of ${HEAD}, rotary positions, ${STEPS} steps of ${BATCH} x ${LENGTH} tokens (${((STEPS * BATCH * LENGTH) / data.train.length).toFixed(2)} of the text: early in training for all), AdamW at ${RATES[0]} with warm-up and cosine decay, seed 1, the same batches for all. Held out: the last 5 %, ${data.validation.length} characters. Seconds are processor time of training alone.`,
      `Model sizes ${SIZES.join(', ')} have ${parameters.map((n) => n ?? '?').join(', ')} parameters; hedgehog, rebased (trained) and favor (not trained) have a few more.`,
      table(
        [
          'attention',
          ...SIZES.map((size) => `bits, size ${size}`),
          `over softmax, size ${TUNED}`,
          'state, numbers a head',
          ...SIZES.map((size) => `seconds, size ${size}`),
        ],
        rows,
      ),
      ...(rates.length === 0
        ? []
        : [
            `## Learning rates\n\nHeld-out bits at size ${TUNED}.\n\n${table(['attention', ...RATES.map((rate) => `rate ${rate}`)], rates)}`,
          ]),
      ...(seeds.length === 0
        ? []
        : [
            `## Seeds\n\nHeld-out bits at size ${TUNED}, seeds 1, ${SEEDS.join(', ')} (initial weights and order of batches). Differences between kinds that are not larger than this say nothing.\n\n${table(['attention', 'bits', 'largest difference'], seeds)}`,
          ]),
    ],
    {
      parameters: linePlot({
        title: 'Held-out bits per character against parameters',
        x: {title: 'parameters', log: 2},
        y: {title: 'bits per character'},
        series: series((name) =>
          SIZES.map((size) => main(name, size)).flatMap((one) => (one ? [[one.parameters, one.bits]] : [])),
        ),
      }),
      time: linePlot({
        title: `Held-out bits per character against training time (model size ${largest})`,
        x: {title: 'seconds of processor time', include: [0]},
        y: {title: 'bits per character, a part of the held-out text'},
        // The last measure is of the whole held-out text, those before of the same part of it.
        series: series((name) => (main(name, largest)?.points ?? []).slice(1, -1)),
      }),
    },
    done,
  );
}

for (const dModel of [TUNED, ...SIZES.filter((size) => size !== TUNED)])
  for (const name of names) await measure(name, dModel, RATES[0], 1);
const among = (list) => list.filter((name) => names.includes(name));
for (const seed of SEEDS) for (const name of among(SEEDED)) await measure(name, TUNED, RATES[0], seed);
for (const rate of RATES.slice(1)) for (const name of among(RATED)) await measure(name, TUNED, rate, 1);
write(true);
