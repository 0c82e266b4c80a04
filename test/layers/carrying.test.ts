/** Where a mask can come from, layer by layer: what masks.ts decides from the graph. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {layers} from '../../index';
import {canCarryMask} from '../../layers/masks';
import {describeOnBackends} from '../helpers/backends';

type Symbolic = tfl.SymbolicTensor;
const l = tfl.layers;

/** A user's layer that makes a mask of its input's values. */
class OwnMask extends l.Layer {
  static className = 'OwnMask';
  override supportsMasking = true;
  override computeMask(inputs: tf.Tensor | tf.Tensor[]) {
    return tf.any(tf.notEqual(Array.isArray(inputs) ? inputs[0] : inputs, 0), -1);
  }
}
/** A user's layer that hands on what it gets. */
class PassOn extends l.Layer {
  static className = 'PassOn';
  override supportsMasking = true;
}

describeOnBackends('a mask', () => {
  const masked = () => l.masking().apply(tfl.input({shape: [5, 6]})) as Symbolic;
  const plain = () => tfl.input({shape: [5, 6]});
  const attention = (args = {}) => layers.linearAttention({numHeads: 1, keyDim: 2, ...args});
  const CASES: [string, (x: Symbolic) => unknown, boolean][] = [
    ['Dense', (x) => l.dense({units: 6}).apply(x), true],
    ['Dropout', (x) => l.dropout({rate: 0.1}).apply(x), true],
    ['LayerNormalization', (x) => l.layerNormalization().apply(x), true],
    ['attention', (x) => attention().apply(x), true],
    ['softmax attention', (x) => layers.softmaxAttention({numHeads: 1, keyDim: 2}).apply(x), true],
    ['attention of it to a memory', (x) => attention().apply([x, plain()]), true],
    ['Add, as the second input', (x) => l.add().apply([plain(), x]), true],
    ['Concatenate', (x) => l.concatenate().apply([x, plain()]), true],
    ["a user's layer that supports masking", (x) => new PassOn({}).apply(x), true],
    [
      'LSTM that returns sequences',
      (x) => l.lstm({recurrentInitializer: 'glorotUniform', units: 6, returnSequences: true}).apply(x),
      true,
    ],
    [
      'LSTM that returns its last output',
      (x) =>
        l
          .repeatVector({n: 5})
          .apply(l.lstm({recurrentInitializer: 'glorotUniform', units: 6}).apply(x) as Symbolic),
      false,
    ],
    ['Conv1D', (x) => l.conv1d({filters: 6, kernelSize: 1}).apply(x), false],
    [
      'a nested model',
      (x) => tfl.sequential({layers: [l.dense({units: 6, inputShape: [5, 6]})]}).apply(x),
      false,
    ],
  ];
  test.each(CASES)('passes %s or not, and does not arise there', (_, through, passes) => {
    expect(canCarryMask(through(masked()) as Symbolic)).toBe(passes);
    expect(canCarryMask(through(plain()) as Symbolic)).toBe(false);
  });

  test('arises in Masking, in Embedding with maskZero, and in layers with a computeMask of their own', () => {
    const embedding = (maskZero: boolean) =>
      l.embedding({inputDim: 3, outputDim: 2, maskZero}).apply(tfl.input({shape: [5]})) as Symbolic;
    expect(canCarryMask(masked())).toBe(true);
    expect(canCarryMask(embedding(true))).toBe(true);
    expect(canCarryMask(embedding(false))).toBe(false);
    expect(canCarryMask(new OwnMask({}).apply(plain()) as Symbolic)).toBe(true);
  });
});
