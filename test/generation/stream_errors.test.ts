/** What streams refuse, in which words, and that nothing is leaked or lost by it. */
import * as tf from '@tensorflow/tfjs-core';
import * as tfl from '@tensorflow/tfjs-layers';
import {generation, layers, models} from '../../index';
import {describeOnBackends, expectNoLeak} from '../helpers/backends';
import {messageOf, valuesOf} from '../helpers/numbers';

type Symbolic = tfl.SymbolicTensor;

const apply = (layer: tfl.layers.Layer, x: Symbolic | Symbolic[]) => layer.apply(x) as Symbolic;
const input = (shape: (number | null)[] = [5, 4]) => tfl.input({shape});
const modelOf = (body: (x: Symbolic) => Symbolic, x = input()) => tfl.model({inputs: x, outputs: body(x)});
const through = (layer: tfl.layers.Layer, x = input()) => modelOf((y) => apply(layer, y), x);
const NAME = {name: 'it'};

class Unknown extends tfl.layers.Layer {
  static className = 'UnknownForTest';
}

const MODELS: [string, () => unknown, string][] = [
  ['no model', () => 5, 'expected model to be a tf.LayersModel; got 5.'],
  [
    'Flatten',
    () => modelOf((x) => apply(tfl.layers.dense({units: 3}), apply(tfl.layers.flatten(NAME), x))),
    "layer 'it' (Flatten) cannot run token by token: it moves positions, or joins them with features.",
  ],
  [
    'a convolution',
    () => through(tfl.layers.conv1d({...NAME, filters: 2, kernelSize: 2})),
    "layer 'it' (Conv1D) cannot run token by token: it reads neighbouring positions, which have no state here.",
  ],
  [
    'pooling over time',
    () => models.transformer({vocabSize: 5, dModel: 4, numLayers: 1, numHeads: 1, numClasses: 2}),
    "layer 'pooling' (SequencePooling) cannot run token by token: it makes one of several positions.",
  ],
  [
    'an unknown class inside a nested model',
    () => through(modelOf((x) => apply(new Unknown(NAME), x)) as never as tfl.layers.Layer),
    "layer 'NESTED/it' (UnknownForTest) cannot run token by token: UnknownForTest is not known to act on each position alone (if it does, give the class `static timewise = true`).",
  ],
  [
    'attention that is not causal',
    () => through(layers.linearAttention({...NAME, numHeads: 1, keyDim: 4})),
    "layer 'it' (LinearAttention) cannot run token by token: LinearAttention 'it' is not causal: its outputs depend on later tokens.",
  ],
  [
    'softmax attention that is not causal',
    () => through(layers.softmaxAttention({...NAME, numHeads: 1, keyDim: 4})),
    "layer 'it' (SoftmaxAttention) cannot run token by token: SoftmaxAttention 'it' is not causal: its outputs depend on later tokens.",
  ],
  [
    'cross attention',
    () =>
      modelOf((x) =>
        apply(layers.linearAttention({...NAME, numHeads: 1, keyDim: 4, causal: true}), [
          x,
          apply(tfl.layers.dense({units: 4}), x),
        ]),
      ),
    "layer 'it' (LinearAttention) cannot run token by token: it attends to other inputs than its own (cross attention, or a mask as an input).",
  ],
  [
    'a recurrent layer',
    () => through(tfl.layers.lstm({...NAME, units: 3, recurrentInitializer: 'zeros', returnSequences: true})),
    "layer 'it' (LSTM) cannot run token by token: recurrent layers are not supported.",
  ],
  [
    'a bidirectional layer',
    () =>
      through(
        tfl.layers.bidirectional({
          ...NAME,
          layer: tfl.layers.simpleRNN({
            units: 3,
            recurrentInitializer: 'zeros',
            returnSequences: true,
          }) as never,
          mergeMode: 'concat',
        }),
      ),
    "layer 'it' (Bidirectional) cannot run token by token: it reads the sequence backwards too.",
  ],
  [
    'a masking layer',
    () => through(tfl.layers.masking(NAME)),
    "layer 'it' (Masking) cannot run token by token: it makes a mask from values; give prefill a mask instead.",
  ],
  [
    'concatenation over time',
    () => modelOf((x) => apply(tfl.layers.concatenate({...NAME, axis: 1}), [x, x])),
    "layer 'it' (Concatenate) cannot run token by token: it works along axis 1, which is not a feature axis.",
  ],
  [
    'normalisation over time',
    () => through(tfl.layers.layerNormalization({...NAME, axis: [1, 2]})),
    "layer 'it' (LayerNormalization) cannot run token by token: it works along axis 1, 2, which is not a feature axis.",
  ],
  [
    'batch normalisation over time',
    () => through(tfl.layers.batchNormalization({...NAME, axis: 1})),
    "layer 'it' (BatchNormalization) cannot run token by token: it works along axis 1, which is not a feature axis.",
  ],
  [
    'softmax over time',
    () => through(tfl.layers.softmax({...NAME, axis: 1})),
    "layer 'it' (Softmax) cannot run token by token: it works along axis 1, which is not a feature axis.",
  ],
  [
    'a slope per position',
    () => through(tfl.layers.prelu(NAME)),
    "layer 'it' (PReLU) cannot run token by token: it has weights per position.",
  ],
  [
    'Dense over time',
    () => through(tfl.layers.dense({...NAME, units: 3}), input([5])),
    "layer 'it' (Dense) cannot run token by token: its input of shape [null,5] has no features beside the time axis.",
  ],
  [
    'a merge that broadcasts',
    () =>
      modelOf(
        (x) => apply(tfl.layers.add(NAME), [x, apply(tfl.layers.embedding({inputDim: 3, outputDim: 4}), x)]),
        input([4, 4]),
      ),
    "layer 'it' (Add) cannot run token by token: its inputs differ in rank or length, so it would broadcast along time.",
  ],
  [
    'two inputs',
    () => {
      const [a, b] = [input(), input()];
      return tfl.model({inputs: [a, b], outputs: apply(tfl.layers.add(), [a, b])});
    },
    'expected a model with one input and one output; got 2 and 1.',
  ],
  [
    'an input of images',
    () => through(tfl.layers.dense({units: 2}), input([5, 4, 3])),
    'expected a model whose input is ids [B,T] or vectors [B,T,D]; got [null,5,4,3].',
  ],
];

describe('a model that cannot be streamed', () => {
  beforeAll(() => tf.setBackend('cpu'));

  test.each(MODELS)('%s: an error that names the layer and the reason', async (_, make, message) => {
    const model = make() as tfl.LayersModel;
    await expectNoLeak(() => {
      const text = messageOf(() => generation.stream(model)).replace(/'model\w*\//, "'NESTED/");
      expect(text).toBe(`generation.stream: ${message}`);
    });
    model.dispose?.();
  });
});

describeOnBackends('a stream', () => {
  let model: tfl.LayersModel;
  beforeAll(() => {
    model = models.transformer({
      vocabSize: 7,
      dModel: 4,
      numLayers: 1,
      numHeads: 1,
      position: 'learned',
      maxLength: 4,
    });
  });
  afterAll(() => {
    model.dispose();
  });

  const CALLS: [string, number, (stream: generation.Stream) => unknown, string][] = [
    [
      'an id past the vocabulary',
      1,
      (s) => s.step(7),
      'stream.step: expected ids to be whole numbers from 0 to 6; got 7.',
    ],
    [
      'a negative id',
      1,
      (s) => s.prefill([1, -1]),
      'stream.prefill: expected ids to be whole numbers from 0 to 6; got -1.',
    ],
    [
      'half an id',
      1,
      (s) => s.step(0.5),
      'stream.step: expected ids to be whole numbers from 0 to 6; got 0.5.',
    ],
    [
      'NaN',
      1,
      (s) => s.step(Number.NaN),
      'stream.step: expected ids to be whole numbers from 0 to 6; got NaN.',
    ],
    [
      'text',
      1,
      (s) => s.prefill('abc' as never),
      "stream.prefill: expected ids to be a tensor or nested arrays of numbers; got 'abc'.",
    ],
    [
      'nothing',
      1,
      (s) => s.step(undefined as never),
      'stream.step: expected ids to be a tensor or nested arrays of numbers; got undefined.',
    ],
    ['no tokens', 1, (s) => s.prefill([]), 'stream.prefill: expected at least one token; got none.'],
    ['two ids in a step', 1, (s) => s.step([1, 2]), 'stream.step: expected one id; got shape [2].'],
    [
      'one id for two rows',
      2,
      (s) => s.step(1),
      'stream.step: expected one token per row, [2]; got shape [].',
    ],
    [
      'one prompt for two rows',
      2,
      (s) => s.prefill([1, 2, 3]),
      'stream.prefill: expected ids of shape [2,T]; got [3].',
    ],
    [
      'three rows for two',
      2,
      (s) => s.prefill([[1], [2], [3]]),
      'stream.prefill: expected ids of shape [2,T]; got [3,1].',
    ],
    [
      'rows of unequal length',
      2,
      (s) => s.prefill([[1, 2], [3]]),
      'stream.prefill: expected ids to be a regular nested array of shape [2,2]; got [3] inside it.',
    ],
    [
      'a float tensor',
      1,
      (s) => tf.tidy(() => s.step(tf.tensor1d([1]))),
      'stream.step: expected ids to be int32; got a tensor of dtype float32.',
    ],
    [
      'a disposed tensor',
      1,
      (s) => {
        const ids = tf.tensor1d([1], 'int32');
        ids.dispose();
        return s.step(ids);
      },
      'stream.step: expected ids to be a live tensor; got a disposed one of shape [1].',
    ],
    [
      'a mask of another shape',
      1,
      (s) => s.prefill([1, 2], {mask: [1]}),
      "stream.prefill: expected mask to have the ids' shape [1,2]; got [1].",
    ],
    [
      'an unknown option',
      1,
      (s) => s.prefill([1], {masks: [1]} as never),
      "stream.prefill: unknown option 'masks'; expected 'mask'.",
    ],
    [
      'more than maxLength',
      1,
      (s) => s.prefill([1, 1, 1, 1]),
      "PositionEmbedding 'position_embedding': position 4 is past maxLength (4); make the model with a larger maxLength or shorten the input.",
    ],
  ];
  test.each(CALLS)('refuses %s, and goes on as if nothing had been', async (_, batchSize, call, message) => {
    const stream = generation.stream(model, {batchSize});
    const other = generation.stream(model, {batchSize});
    const first = Array.from({length: batchSize}, (_, row) => [1 + row]);
    stream.prefill(first).dispose();
    other.prefill(first).dispose();
    await expectNoLeak(() => {
      expect(messageOf(() => call(stream))).toBe(message);
    });
    const next = first.flat();
    expect(valuesOf(() => stream.step(next))).toEqual(valuesOf(() => other.step(next)));
    expect(stream.position).toBe(2);
    stream.dispose();
    other.dispose();
  });

  test('is freed once, and every use afterwards says so', () => {
    const stream = generation.stream(model);
    stream.dispose();
    stream.dispose();
    const uses: [string, () => unknown][] = [
      ['step', () => stream.step(1)],
      ['prefill', () => stream.prefill([1])],
      ['fork', () => stream.fork()],
      ['position', () => stream.position],
      ['positions', () => stream.positions],
      ['stateBytes', () => stream.stateBytes],
    ];
    for (const [name, use] of uses) {
      expect(messageOf(use)).toBe(`stream.${name}: this stream was disposed.`);
    }
  });

  test.each([
    [{batchSize: 0}, 'generation.stream: expected batchSize to be a whole number of at least 1; got 0.'],
    [{batchsize: 1}, "generation.stream: unknown option 'batchsize'; expected 'batchSize'."],
  ])('is refused with options %j', (options, message) => {
    expect(messageOf(() => generation.stream(model, options as never))).toBe(message);
  });
});
