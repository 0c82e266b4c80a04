/**
 * The public docstrings, and whether their snippets run: node run_docstrings.mjs RESULTS. A snippet runs in a function
 * that has tfjs as `tf`, this package as `tfla` and by its names, and the things below as whatever a reader would have.
 * Counts of steps are cut.
 */
import {writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import ts from 'typescript';
import {exportsOf, isModule, readEntries, targetOf} from '../../scripts/api/entries.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const require = createRequire(join(root, 'package.json'));
const tf = require('@tensorflow/tfjs');
const tfla = require('tfjs-linear-attention');
console.log = () => {};
await tf.setBackend('cpu');

/** {name, kind, text} of every export, those of namespaces too, each declaration once. */
function docstrings() {
  const {checker, entries} = readEntries(root);
  const seen = new Set();
  const found = [];
  const collect = (symbols, prefix) => {
    for (const symbol of symbols) {
      const target = targetOf(checker, symbol);
      if (seen.has(target)) continue;
      seen.add(target);
      if (isModule(target)) {
        collect(exportsOf(checker, target), `${symbol.name}.`);
        continue;
      }
      const declaration = target.declarations[0];
      const type = checker.getTypeOfSymbolAtLocation(target, declaration);
      const kind =
        target.flags & ts.SymbolFlags.Class
          ? 'class'
          : target.flags & ts.SymbolFlags.Value
            ? type.getCallSignatures().length > 0
              ? 'function'
              : 'value'
            : 'type';
      const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
      const comments = target.declarations.flatMap((one) =>
        (
          ts.getLeadingCommentRanges(one.getSourceFile().text, (one === declaration ? node : one).pos) ?? []
        ).map(({pos, end}) => one.getSourceFile().text.slice(pos, end)),
      );
      const text = comments
        .filter((comment) => comment.startsWith('/**'))
        .join('\n')
        .replace(/^ *\* ?/gm, '');
      found.push({name: `${prefix}${symbol.name}`, kind, text});
    }
  };
  for (const {exports} of entries) collect(exports, '');
  return found;
}

const few = (options, names) =>
  Object.fromEntries(
    Object.entries(options ?? {}).map(([key, value]) => [
      key,
      names.includes(key) ? Math.min(value, 2) : value,
    ]),
  );
const training = {
  ...tfla.training,
  train: (model, data, options) =>
    tfla.training.train(model, data, {...few(options, ['steps', 'batchSize']), length: 8}),
  distill: (student, teacher, data, options) =>
    tfla.training.distill(student, teacher, data, {...few(options, ['steps']), length: 8}),
  linearize: (model, data, options) =>
    tfla.training.linearize(model, data, {...options, length: 8, distill: {steps: 1}, fineTune: {steps: 1}}),
};

/** What a reader of a snippet has at hand. */
function things() {
  const text = Array.from({length: 95}, (_, i) => String.fromCharCode(32 + i)).join('');
  const tokenizer = tfla.models.characterTokenizer(text);
  const tokens = tokenizer.encode(text.repeat(3));
  const sizes = {vocabSize: tokenizer.vocabSize, dModel: 8, numLayers: 1, numHeads: 2};
  const favored = ['favor', 'elu'].map((featureMap) => tfla.models.transformer({...sizes, featureMap}));
  const teacher = tfla.models.transformer({...sizes, attention: 'softmax'});
  const model = favored[1];
  tfla.training.compile(model, {optimizer: 'sgd'});
  const [inputs, targets] = [1, 2].map((seed) =>
    tf.cast(tf.randomUniform([4, 8], 0, 90, 'float32', seed), 'int32'),
  );
  const [q, k, v] = [1, 2, 3].map((seed) => tf.randomNormal([1, 2, 5, 8], 0, 1, 'float32', seed));
  return {
    ...{model, teacher, tokenizer, tokens, inputs, targets, x: inputs, y: targets, q, k, v},
    random: favored[0],
    stream: tfla.generation.stream(model),
    ids: [1, 2, 3],
    bar: () => {},
    process: {stdout: {write() {}}},
  };
}

const AsyncFunction = (async () => {}).constructor;
/** Models of another kind than `model`; null: needs what is not here, a GPU's driver, a worker or a server. */
const INSTEAD = {
  'training.linearize': (scope) => ({...scope, model: scope.teacher}),
  'training.redrawSchedule': (scope) => ({...scope, model: scope.random}),
  'layers.redrawFeatures': (scope) => ({...scope, model: scope.random}),
  useNodeWebGPU: null,
  // Run in a browser by test/browser/deployment.test.ts.
  'generation.remote': null,
  'generation.serve': null,
  'training.fetchModel': null,
};

// What `loadModel` shows is there.
await tfla.training.saveModel(things().model, 'my-model');
const results = [];
for (const {name, kind, text} of docstrings()) {
  const snippets = [...text.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1]);
  const errors = [];
  for (const snippet of INSTEAD[name] === null ? [] : snippets) {
    const scope = {tf, tfla, ...tfla, training, ...things()};
    const given = INSTEAD[name]?.(scope) ?? scope;
    // What a snippet declares itself is not handed to it.
    const own = [...snippet.matchAll(/\b(?:const|let) (\w+|[{[][^=]*[}\]]) =/g)].flatMap((match) =>
      match[1].replace(/\w+: /g, '').match(/\w+/g),
    );
    const names = Object.keys(given).filter((key) => !own.includes(key));
    try {
      await new AsyncFunction(...names, snippet)(...names.map((key) => given[key]));
    } catch (error) {
      errors.push(String(error?.stack ?? error));
    }
  }
  results.push({name, kind, documented: text.trim() !== '', snippets: snippets.length, errors});
}
writeFileSync(process.argv[2], JSON.stringify(results));
process.exit(0);
