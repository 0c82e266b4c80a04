import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {linearAttention, type RotaryOptions, rotary} from '../ops';
import {rotate} from '../src/rotary';
import {composedRotary, runRotary} from '../src/rotary_kernels';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, goldenDifference, type Tolerance} from './helpers/compare';
import {type GoldenTensor, goldenCases} from './helpers/golden';
import {take, valuesOf} from './helpers/numbers';
import {randomNumbers} from './helpers/random_numbers';

const [B, H, N, r] = [2, 3, 5, 6];
const X = randomNumbers(B * H * N * r, 1);
const x = (): tf.Tensor => tf.tensor(X, [B, H, N, r]);
const TIGHT: Tolerance = {rms: 3e-7, max: 1e-6};

/** The definition in double precision; positions[b][n]. */
function reference(
  values: ArrayLike<number>,
  positions: number[][],
  base: number,
  pairing: string,
): number[] {
  const out = Array.from(values);
  for (let row = 0; row < B * H * N; row++) {
    const position = positions[Math.floor(row / (H * N))][row % N];
    for (let i = 0; i < r / 2; i++) {
      const angle = position * base ** ((-2 * i) / r);
      const [a, b] = pairing === 'half' ? [i, i + r / 2] : [2 * i, 2 * i + 1];
      const [u, v] = [values[row * r + a], values[row * r + b]];
      out[row * r + a] = u * Math.cos(angle) - v * Math.sin(angle);
      out[row * r + b] = u * Math.sin(angle) + v * Math.cos(angle);
    }
  }
  return out;
}

const from = (offset: number): number[][] =>
  Array.from({length: B}, () => Array.from({length: N}, (_, n) => offset + n));

const CASES: [string, RotaryOptions][] = [
  ['the defaults: half, base 10000, from 0', {}],
  ['interleaved', {pairing: 'interleaved'}],
  ['an offset', {offset: 3}],
  ['an offset of a million, interleaved', {offset: 1e6, pairing: 'interleaved'}],
  ['an offset of 2^40', {offset: 2 ** 40}],
  ['base 500', {base: 500, offset: 2}],
];

const tensor = ({data, shape}: GoldenTensor): tf.Tensor => tf.tensor(data, shape);

describeOnBackends('rotary', () => {
  test.each(CASES)('turns pairs by the angles of the definition: %s', (_, options) => {
    const {offset = 0, base = 10000, pairing = 'half'} = options;
    const want = reference(X, from(offset), base, pairing);
    expect(
      difference(
        valuesOf(() => rotary(x(), options)),
        want,
        TIGHT,
      ),
    ).toBeNull();
  });

  test.each(CASES)('has the gradient of a rotation, which turns back: %s', (_, options) => {
    const {offset = 0, base = 10000, pairing = 'half'} = options;
    const dy = randomNumbers(B * H * N * r, 2);
    const backwards = from(offset).map((row) => row.map((position) => -position));
    const want = reference(dy, backwards, base, pairing);
    const got = valuesOf(() => tf.grad((x) => rotary(x, options))(x(), tf.tensor(dy, [B, H, N, r])));
    expect(difference(got, want, TIGHT)).toBeNull();
  });

  test('position 0 changes nothing', () => {
    expect(valuesOf(() => tf.slice(rotary(x()), [0, 0, 0, 0], [B, H, 1, r]))).toEqual(
      valuesOf(() => tf.slice(x(), [0, 0, 0, 0], [B, H, 1, r])),
    );
  });

  test('dot products of queries and keys depend on their distance only', () => {
    for (const pairing of ['half', 'interleaved'] as const) {
      const dots = (offset: number) =>
        valuesOf(() =>
          tf.matMul(rotary(x(), {offset, pairing}), rotary(x(), {offset, pairing}), false, true),
        );
      expect(difference(dots(1000), dots(0), {rms: 1e-6, max: 1e-5})).toBeNull();
    }
  });

  test('one token at an offset is that token of the sequence', () => {
    const whole = valuesOf(() => tf.slice(rotary(x(), {offset: 7}), [0, 0, 3, 0], [B, H, 1, r]));
    const alone = valuesOf(() => rotary(tf.slice(x(), [0, 0, 3, 0], [B, H, 1, r]), {offset: 10}));
    expect(alone).toEqual(whole);
  });

  test('BNHD gives the values of BHND, and rank 3 those of one head', () => {
    const swap = (t: tf.Tensor) => tf.transpose(t, [0, 2, 1, 3]);
    const want = valuesOf(() => rotary(x(), {offset: 2}));
    expect(valuesOf(() => swap(rotary(swap(x()), {offset: 2, dataFormat: 'BNHD'})))).toEqual(want);
    const heads = [B * H, N, r] as [number, number, number];
    for (const dataFormat of ['BHND', 'BNHD'] as const) {
      tf.tidy(() => {
        const three = rotary(tf.reshape(x(), heads), {offset: 2, dataFormat});
        expect(three.shape).toEqual(heads);
        expect(Array.from(three.dataSync())).toEqual(want);
      });
    }
  });

  test('takes nested arrays and int32, and gives float32', () => {
    tf.tidy(() => {
      const quarter = rotary([
        [
          [1, 0],
          [1, 0],
        ],
      ]);
      expect(quarter.dtype).toBe('float32');
      expect(Array.from(quarter.dataSync())).toEqual([
        1,
        0,
        Math.fround(Math.cos(1)),
        Math.fround(Math.sin(1)),
      ]);
      expect(rotary(tf.tensor3d([1, 0, 1, 0], [1, 2, 2], 'int32')).dataSync()).toEqual(quarter.dataSync());
    });
  });

  test('an empty sequence stays empty', () => {
    tf.tidy(() => expect(rotary(tf.zeros([1, 2, 0, 4])).shape).toEqual([1, 2, 0, 4]));
  });

  test('explicit positions may differ from row to row, in both layouts', () => {
    const positions = [
      [0, 0, 0, 1, 2],
      [5, 6, 9, 12345678, 3],
    ];
    for (const pairing of ['half', 'interleaved'] as const) {
      const want = reference(X, positions, 10000, pairing);
      const options = {positions: Int32Array.from(positions.flat()), base: 10000, pairing};
      const heads = valuesOf(() => rotate(x() as tf.Tensor4D, {...options, dataFormat: 'BHND'}));
      expect(difference(heads, want, TIGHT)).toBeNull();
      const rows = valuesOf(() => {
        const swapped = tf.transpose(x(), [0, 2, 1, 3]) as tf.Tensor4D;
        return tf.transpose(rotate(swapped, {...options, dataFormat: 'BNHD'}), [0, 2, 1, 3]);
      });
      expect(rows).toEqual(heads);
    }
  });

  test.each(['half', 'interleaved'] as const)(
    'the stock ops of other backends give the same: %s',
    (pairing) => {
      const perRow = [0, 0, 1, 2, 3, 7, 8, 9, 10, 11];
      for (const positions of [3, perRow]) {
        for (const dataFormat of ['BHND', 'BNHD'] as const) {
          for (const back of [false, true]) {
            tf.tidy(() => {
              const attrs = {positions, base: 10000, pairing, dataFormat, back};
              const input = dataFormat === 'BHND' ? x() : tf.reshape(x(), [B, N, H, r]);
              const want = runRotary(input, attrs).dataSync();
              const got = composedRotary({inputs: {x: input}, attrs, backend: tf.backend()}) as tf.Tensor;
              expect(difference(got.dataSync(), want, TIGHT)).toBeNull();
            });
          }
        }
      }
    },
  );

  test('leaves nothing behind, forward and backward, and keeps its input', async () => {
    const input = x();
    await expectNoLeak(() => {
      take(rotary(input, {offset: 2}));
      take(
        rotary(
          tf.tidy(() => tf.keep(input)),
          {pairing: 'interleaved'},
        ),
      );
      take(tf.grad((x) => tf.sum(rotary(x)))(input));
      take(tf.grad((x) => tf.sum(tf.square(tf.grad((x) => tf.sum(tf.square(rotary(x))))(x))))(input));
    });
    expect(input.isDisposed).toBe(false);
    input.dispose();
  });
});

describeOnBackends('rotary before linear attention', () => {
  const before = goldenCases('g7_rotary.json').filter(({options}) => options['rotary'] === 'before_phi');

  test('has golden cases', () => {
    expect(before.length).toBe(2);
  });

  test.each(before.map((c) => [c.name, c] as const))('equals the golden case %s', (_, golden) => {
    const {
      pairing,
      position_offset: offset,
      base,
      causal,
      eps,
    } = golden.options as {
      pairing: 'half' | 'interleaved';
      position_offset: number;
      base: number;
      causal: boolean;
      eps: number;
    };
    tf.tidy(() => {
      const attention = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) =>
        linearAttention(rotary(q, {pairing, offset, base}), rotary(k, {pairing, offset, base}), v, {
          causal,
          eps,
          returnState: true,
        });
      const inputs = ['q', 'k', 'v'].map((name) => tensor(golden.inputs[name]));
      const {output, state} = attention(inputs[0], inputs[1], inputs[2]);
      const {out, S, z} = golden.outputs;
      expect(goldenDifference(output.dataSync(), out.data, 'output')).toBeNull();
      expect(goldenDifference(state.s.dataSync(), S.data, 'output')).toBeNull();
      expect(goldenDifference(state.z.dataSync(), z.data, 'output')).toBeNull();
      const gradients = tf.grads((q, k, v) => attention(q, k, v).output)(
        inputs,
        tensor(golden.cotangents['out']),
      );
      gradients.forEach((gradient, i) => {
        expect(goldenDifference(gradient.dataSync(), golden.grads['qkv'[i]].data, 'gradient')).toBeNull();
      });
    });
  });
});
