/**
 * What storing a model in fewer bytes costs: trains a small language model on Moby-Dick (or takes --model DIR, saved by a
 * run with the same text), saves it in each form, loads it again and measures the loss on held-out text.
 *
 * `node benchmarks/quantization.mjs` writes benchmarks/results/quantization.md. --steps N trains that many steps.
 */
import {mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';
import {brotliCompressSync, constants} from 'node:zlib';
import {mobyDick} from '../examples/node/moby_dick.mjs';
import {tf, tfla, useBackend} from './lib/ours.mjs';

const SIZE = {dModel: 128, numLayers: 3, numHeads: 4, featureMap: 'exp'};
const HELD = 40_000;
const LENGTH = 128;
const root = fileURLToPath(new URL('..', import.meta.url));

const {values} = parseArgs({options: {model: {type: 'string'}, steps: {type: 'string', default: '600'}}});
const {generation, models, patches, training} = tfla;

tf.enableProdMode();
await useBackend('wasm');
patches.all();
const text = mobyDick();
const tokenizer = models.characterTokenizer(text);
const ids = tokenizer.encode(text);
const [train, held] = [ids.slice(0, -HELD), ids.slice(-HELD)];

async function trained() {
  if (values.model) return training.loadModel(values.model);
  const model = models.transformer({vocabSize: tokenizer.vocabSize, ...SIZE, seed: 1});
  const printer = training.progressPrinter(process.stderr);
  await training.train(model, train, {
    steps: Number(values.steps),
    batchSize: 8,
    length: LENGTH,
    learningRate: 4e-3,
    seed: 1,
    onProgress: printer.update,
  });
  printer.end();
  return model;
}

/** Ids that the model writes after a prompt, always the likeliest. */
async function written(model) {
  const made = [];
  const prompt = [...tokenizer.encode('The whale ')];
  for await (const id of generation.generate(model, prompt, {maxNewTokens: 200, temperature: 0}))
    made.push(id);
  return made;
}

const model = await trained();
const folder = mkdtempSync(join(tmpdir(), 'quantization-'));
const rows = [];
try {
  let exact = null;
  for (const quantize of [undefined, 'float16', 'uint16', 'uint8']) {
    const name = quantize ?? 'float32';
    const path = join(folder, name);
    await training.saveModel(model, path, quantize === undefined ? {} : {quantize});
    const loaded = await training.loadModel(path);
    const {bitsPerCharacter} = await training.evaluate(loaded, held, {batchSize: 8, length: LENGTH});
    const ids = await written(loaded);
    loaded.dispose();
    const weights = join(path, 'weights.bin');
    const packed = brotliCompressSync(readFileSync(weights), {params: {[constants.BROTLI_PARAM_QUALITY]: 9}});
    exact ??= {bitsPerCharacter, ids};
    const parting = ids.findIndex((id, i) => id !== exact.ids[i]);
    rows.push({
      name,
      bytes: statSync(weights).size,
      packed: packed.length,
      bits: bitsPerCharacter,
      more: bitsPerCharacter - exact.bitsPerCharacter,
      same: parting < 0 ? ids.length : parting,
    });
  }
} finally {
  rmSync(folder, {recursive: true, force: true});
}

const lines = rows.map(
  ({name, bytes, packed, bits, more, same}) =>
    `| ${name} | ${(bytes / 1024).toFixed(0)} | ${(packed / 1024).toFixed(0)} | ${bits.toFixed(4)} | ${more >= 0 ? '+' : ''}${more.toFixed(5)} | ${same} of 200 |`,
);
const table = [
  '| stored as | weights.bin, KiB | brotli, KiB | bits per character | more than float32 | same greedy text |',
  '|---|---:|---:|---:|---:|---:|',
  ...lines,
].join('\n');
console.log(table);
mkdirSync(join(root, 'benchmarks/results'), {recursive: true});
writeFileSync(
  join(root, 'benchmarks/results/quantization.md'),
  `# What quantized weights cost

\`training.saveModel(model, folder, {quantize})\`, or \`tfjs-linear-attention export --quantize\`: the matrices in tfjs's own
quantized forms, one scale for each tensor; biases and gains stay float32. A character transformer with linear attention
(\`featureMap: 'exp'\`, ${model.countParams()} parameters) ${values.model ? 'of an earlier run' : `trained for ${values.steps} steps of 8 x ${LENGTH} characters`} on Moby-Dick, measured on
${HELD} held-out characters after saving and loading. "Same greedy text": characters until the greedy continuation of one prompt
first differs from the float32 model's.

${table}

\`node benchmarks/quantization.mjs\` makes this file; wasm backend, Node ${process.versions.node.split('.')[0]}.
`,
);
