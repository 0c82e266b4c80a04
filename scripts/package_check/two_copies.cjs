/** `other` has copies of tfjs of its own (scripts/checks/two_copies.mjs), and is loaded first. */
const warnings = [];
console.warn = (text) => warnings.push(String(text));
const {tfl} = require('other');
require('@tensorflow/tfjs-backend-cpu');
const core = require.resolve('@tensorflow/tfjs-core');
const {generation, layers} = require('tfjs-linear-attention');

function expect(condition, text) {
  if (!condition) throw new Error(`two copies: ${text}`);
}
const ours = warnings.filter((text) => text.startsWith('tfjs-linear-attention:'));
expect(ours.length === 1, `expected one warning; got ${JSON.stringify(ours)}`);
for (const part of [
  core,
  'other/node_modules/@tensorflow/tfjs-core',
  'npm ls @tensorflow/tfjs-core',
  'npm dedupe',
]) {
  expect(ours[0].includes(part), `expected the warning to name ${part}; got ${ours[0]}`);
}

function messageOf(f) {
  try {
    f();
  } catch (error) {
    return error.message;
  }
  return 'no error';
}
const input = tfl.input({shape: [null, 4]});
const foreign = tfl.model({inputs: input, outputs: tfl.layers.dense({units: 2}).apply(input)});
for (const message of [
  messageOf(() => layers.linearAttention({numHeads: 1, keyDim: 2}).apply(input)),
  messageOf(() => generation.stream(foreign)),
]) {
  expect(
    /was made by another copy of @tensorflow\/tfjs-layers .*npm dedupe/.test(message),
    `expected an error that explains; got ${message}`,
  );
}
