/** The demo page's file of a training run: what is saved is what is opened, and nothing else is opened. */
import {decodeRun, encodeRun} from '../../examples/browser/src/run/run_file';
import type {Run} from '../../examples/browser/src/worker/protocol';
import {messageOf} from '../helpers/numbers';

const RUN: Run = {
  options: {
    ...{
      attention: 'linear',
      dModel: 16,
      layers: 1,
      heads: 2,
      batch: 8,
      length: 64,
      learningRate: 0.004,
      seed: 1,
    },
  },
  text: 'Call me Ishmael. ☃',
  step: 12,
  losses: [3.5, 3.25],
  files: {
    artifacts: {
      modelTopology: {className: 'Model'},
      weightSpecs: [{name: 'w', shape: [2], dtype: 'float32'}],
      weightData: Float32Array.of(1, -2).buffer,
    },
    tokenizer: {type: 'character', characters: ['a', 'b']},
  },
  checkpoint: Uint8Array.of(9, 8, 7),
};

/** The file with its header changed. */
function withHeader(change: (header: Record<string, unknown>) => void): Uint8Array {
  const bytes = encodeRun(RUN);
  const length = new DataView(bytes.buffer).getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
  change(header);
  const changed = new TextEncoder().encode(JSON.stringify(header));
  const result = new Uint8Array([...bytes.subarray(0, 12), ...changed, ...bytes.subarray(12 + length)]);
  new DataView(result.buffer).setUint32(8, changed.length, true);
  return result;
}

test('what was saved is opened again, wherever its bytes lie in a buffer', () => {
  const bytes = encodeRun(RUN);
  expect(decodeRun(bytes)).toEqual(RUN);
  const shifted = new Uint8Array(bytes.length + 5);
  shifted.set(bytes, 5);
  expect(decodeRun(shifted.subarray(5))).toEqual(RUN);
});

test.each([
  ['nothing', new Uint8Array(0), /not saved by this page/],
  ['another file', new TextEncoder().encode('{"model": 1, "format": 2}'), /not saved by this page/],
  ['half of it', encodeRun(RUN).subarray(0, 40), /cut off/],
  ['all but its last byte', encodeRun(RUN).subarray(0, -1), /length is not what it says/],
  ['another version', withHeader((header) => (header['version'] = 2)), /another version/],
  ['no text', withHeader((header) => (header['text'] = '')), /no text/],
  ['a negative step', withHeader((header) => (header['step'] = -1)), /step/],
  ['losses that are none', withHeader((header) => (header['losses'] = ['x'])), /losses/],
  ['no model', withHeader((header) => (header['modelTopology'] = null)), /no model/],
  ['parts longer than the file', withHeader((header) => (header['weightBytes'] = 1e9)), /length/],
  ['no settings', withHeader((header) => (header['options'] = [])), /no settings/],
  [
    'a model too large',
    withHeader((header) => Object.assign(header['options'] as object, {dModel: 1e6})),
    /dModel/,
  ],
])('%s is refused with the reason', (_, bytes, reason) => {
  expect(messageOf(() => decodeRun(bytes as Uint8Array))).toMatch(reason as RegExp);
});
