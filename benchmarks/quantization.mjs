/**
 * What storing a model in fewer bytes costs: saves the page's two models (examples/browser/public/models, trained by the
 * command line on Moby-Dick) in each form, loads them again and measures the loss on text that they were not trained on.
 *
 * `node benchmarks/quantization.mjs` writes benchmarks/results/quantization.md.
 */
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {brotliCompressSync, constants} from 'node:zlib';
import {mobyDick} from '../examples/node/moby_dick.mjs';
import {tf, tfla, useBackend} from './lib/ours.mjs';

/** The command line keeps a little more than this of the end of the text from training. */
const HELD = 16_000;
const LENGTH = 256;
const root = fileURLToPath(new URL('..', import.meta.url));

const {generation, models, patches, training} = tfla;

tf.enableProdMode();
await useBackend('wasm');
patches.all();

/** Ids that the model writes after a prompt, always the likeliest. */
async function written(model, prompt) {
  const made = [];
  for await (const id of generation.generate(model, prompt, {maxNewTokens: 200, temperature: 0}))
    made.push(id);
  return made;
}

/** One row of the table per form. */
async function rowsOf(name, folder) {
  const source = join(root, 'examples/browser/public/models', name);
  const tokenizer = models.characterTokenizerFromJSON(
    JSON.parse(readFileSync(join(source, 'tokenizer.json'), 'utf8')),
  );
  const held = tokenizer.encode(mobyDick().slice(-HELD));
  const prompt = [...tokenizer.encode('The whale ')];
  const model = await training.loadModel(source);
  const rows = [];
  for (const quantize of [undefined, 'float16', 'uint16', 'uint8']) {
    const form = quantize ?? 'float32';
    const path = join(folder, name, form);
    await training.saveModel(model, path, quantize === undefined ? {} : {quantize});
    const loaded = await training.loadModel(path);
    const {bitsPerCharacter} = await training.evaluate(loaded, held, {batchSize: 4, length: LENGTH});
    const ids = await written(loaded, prompt);
    loaded.dispose();
    const weights = readFileSync(join(path, 'weights.bin'));
    const packed = brotliCompressSync(weights, {params: {[constants.BROTLI_PARAM_QUALITY]: 9}});
    rows.push({form, bytes: weights.length, packed: packed.length, bits: bitsPerCharacter, ids});
  }
  const parameters = model.countParams();
  model.dispose();
  return {parameters, rows};
}

const kib = (bytes) => (bytes / 1024).toFixed(0);
const folder = mkdtempSync(join(tmpdir(), 'quantization-'));
const lines = [];
let parameters = 0;
try {
  for (const name of ['linear', 'softmax']) {
    const found = await rowsOf(name, folder);
    parameters = found.parameters;
    const [exact] = found.rows;
    for (const {form, bytes, packed, bits, ids} of found.rows) {
      const more = bits - exact.bits;
      const parting = ids.findIndex((id, i) => id !== exact.ids[i]);
      const same = parting < 0 ? ids.length : parting;
      lines.push(
        `| ${name} | ${form} | ${kib(bytes)} | ${kib(packed)} | ${bits.toFixed(4)} | ${more >= 0 ? '+' : ''}${more.toFixed(5)} | ${same} of 200 |`,
      );
    }
  }
} finally {
  rmSync(folder, {recursive: true, force: true});
}
const table = [
  '| attention | stored as | weights.bin, KiB | brotli, KiB | bits per character | more than float32 | same greedy text |',
  '|---|---|---:|---:|---:|---:|---:|',
  ...lines,
].join('\n');
console.log(table);
mkdirSync(join(root, 'benchmarks/results'), {recursive: true});
writeFileSync(
  join(root, 'benchmarks/results/quantization.md'),
  `# What quantized weights cost

\`training.saveModel(model, folder, {quantize})\`, or \`tfjs-linear-attention export --quantize\`: the matrices in tfjs's own
quantized forms, one scale for each tensor; biases and gains stay float32. The two models of the demo page (\`examples/browser\`,
${parameters} parameters, trained by the command line on Moby-Dick), measured on ${HELD} characters that they were not trained on,
after saving and loading. "Same greedy text": characters until the greedy continuation of one prompt first differs from the float32
model's.

${table}

\`node benchmarks/quantization.mjs\` makes this file; wasm backend, Node ${process.versions.node.split('.')[0]}.
`,
);
