import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {type SoftmaxAttentionOptions, softmaxAttention} from '../ops';
import {describeOnBackends, expectNoLeak} from './helpers/backends';
import {difference, FLOAT32} from './helpers/compare';
import {centralDifferences} from './helpers/finite_differences';
import {take, valuesOf} from './helpers/numbers';
import {randomNumbers} from './helpers/random_numbers';
import {type SoftmaxProblem, softmaxBackward, softmaxForward} from './helpers/softmax_reference';

const B = 2;
const H = 3;

function problem(extra: Partial<SoftmaxProblem> = {}): SoftmaxProblem {
  const sizes = {B, H, Nq: 7, Nk: 7, r: 4, d: 6, ...extra};
  return {
    ...sizes,
    q: randomNumbers(B * H * sizes.Nq * sizes.r, 1),
    k: randomNumbers(B * H * sizes.Nk * sizes.r, 2),
    v: randomNumbers(B * H * sizes.Nk * sizes.d, 3),
    ...extra,
  };
}

const tensors = (p: SoftmaxProblem): tf.Tensor[] => [
  tf.tensor(p.q as Float32Array, [p.B, p.H, p.Nq, p.r]),
  tf.tensor(p.k as Float32Array, [p.B, p.H, p.Nk, p.r]),
  tf.tensor(p.v as Float32Array, [p.B, p.H, p.Nk, p.d]),
];

const optionsOf = ({causal, mask, scale, Nk}: SoftmaxProblem): SoftmaxAttentionOptions => ({
  ...(causal !== undefined && {causal}),
  ...(scale !== undefined && {scale}),
  ...(mask !== undefined && {mask: tf.tensor(Array.from(mask), [B, Nk])}),
});

/** [output, dq, dk, dv] of the op for the gradient `dOutput` of the output. */
function outputAndGradients(p: SoftmaxProblem, dOutput: ArrayLike<number>): number[][] {
  return tf.tidy(() => {
    const dy = tf.tensor(Float32Array.from(dOutput), [p.B, p.H, p.Nq, p.d]);
    const attention = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) => softmaxAttention(q, k, v, optionsOf(p));
    const [q, k, v] = tensors(p);
    const gradients = tf.grads((q, k, v) => tf.sum(tf.mul(attention(q, k, v), dy)))([q, k, v]);
    return [attention(q, k, v), ...gradients].map((x) => Array.from(x.dataSync()));
  });
}

const LEFT = [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0];
const HOLES_AND_NOTHING = [1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0];

const CASES: {[name: string]: SoftmaxProblem} = {
  'all keys': problem(),
  causal: problem({causal: true}),
  'odd sizes': problem({r: 3, d: 5}),
  'one feature, one value, one token': problem({r: 1, d: 1, Nq: 1, Nk: 1}),
  'fewer queries than keys': problem({Nq: 3}),
  'more queries than keys': problem({Nk: 3}),
  'a scale of its own': problem({scale: 0.3}),
  'padding left in one row, right in the other': problem({mask: LEFT}),
  'padding left in one row, right in the other, causal': problem({mask: LEFT, causal: true}),
  'holes in one row, the other all masked': problem({mask: HOLES_AND_NOTHING}),
  'holes in one row, the other all masked, causal': problem({mask: HOLES_AND_NOTHING, causal: true}),
};

describe('the softmax reference', () => {
  test('has gradients that central differences confirm', () => {
    const p = problem({Nq: 4, Nk: 4, mask: [1, 0, 1, 1, 0, 0, 0, 1], causal: true});
    const dOutput = randomNumbers(B * H * 4 * 6, 4);
    const loss = (at: Partial<SoftmaxProblem>) =>
      softmaxForward({...p, ...at}).reduce((sum, y, i) => sum + y * dOutput[i], 0);
    const {dq, dk, dv} = softmaxBackward(p, dOutput);
    expect(
      difference(
        dq,
        centralDifferences((q) => loss({q}), p.q),
        {rms: 1e-8, max: 1e-8},
      ),
    ).toBeNull();
    expect(
      difference(
        dk,
        centralDifferences((k) => loss({k}), p.k),
        {rms: 1e-8, max: 1e-8},
      ),
    ).toBeNull();
    expect(
      difference(
        dv,
        centralDifferences((v) => loss({v}), p.v),
        {rms: 1e-8, max: 1e-8},
      ),
    ).toBeNull();
  });
});

describeOnBackends('softmaxAttention', () => {
  test.each(Object.entries(CASES))('output and gradients equal the reference: %s', (_, p) => {
    const dOutput = randomNumbers(B * H * p.Nq * p.d, 4);
    const {dq, dk, dv} = softmaxBackward(p, dOutput);
    const got = outputAndGradients(p, dOutput);
    const wrong = [softmaxForward(p), dq, dk, dv].map((want, i) => difference(got[i], want, FLOAT32));
    expect(wrong).toEqual([null, null, null, null]);
  });

  test.each([false, true])('what lies under a mask has no effect, NaN included (causal = %s)', (causal) => {
    const clean = problem({mask: LEFT, causal});
    const dOutput = randomNumbers(B * H * 7 * 6, 4);
    const want = outputAndGradients(clean, dOutput);
    for (const dirt of [Number.NaN, 1e9, Number.POSITIVE_INFINITY]) {
      const [k, v] = [Float32Array.from(clean.k), Float32Array.from(clean.v)];
      const masked = (index: number, width: number) =>
        LEFT[Math.floor(index / (H * 7 * width)) * 7 + (Math.floor(index / width) % 7)] === 0;
      k.forEach((_, i) => {
        if (masked(i, 4)) k[i] = dirt;
      });
      v.forEach((_, i) => {
        if (masked(i, 6)) v[i] = dirt;
      });
      const got = outputAndGradients({...clean, k, v}, dOutput);
      expect(got.map((values, i) => values.every((x, n) => x === want[i][n]))).toEqual([
        true,
        true,
        true,
        true,
      ]);
      expect(got[2].every((x, i) => !masked(i, 4) || x === 0)).toBe(true);
      expect(got[3].every((x, i) => !masked(i, 6) || x === 0)).toBe(true);
    }
  });

  test.each([false, true])(
    'a row whose keys are all masked gives exactly 0, forward and backward (causal = %s)',
    (causal) => {
      const p = problem({mask: HOLES_AND_NOTHING, causal});
      for (const values of outputAndGradients(p, randomNumbers(B * H * 7 * 6, 4))) {
        expect(values.slice(values.length / 2).every((x) => x === 0)).toBe(true);
        expect(values.slice(0, values.length / 2).some((x) => x !== 0)).toBe(true);
      }
    },
  );

  test('a mask keeps where it is not 0, as numbers, booleans or nested arrays', () => {
    const [q, k, v] = tensors(problem());
    const want = valuesOf(() => softmaxAttention(q, k, v, {mask: tf.tensor(LEFT, [2, 7])}));
    const nested = [LEFT.slice(0, 7), LEFT.slice(7)];
    for (const mask of [
      nested,
      nested.map((row) => row.map((keep) => keep * 0.25)),
      nested.map((row) => row.map((keep) => -keep)),
      nested.map((row) => row.map(Boolean)),
      nested.map((row) => Uint8Array.from(row)),
    ]) {
      expect(valuesOf(() => softmaxAttention(q, k, v, {mask: mask as tf.TensorLike}))).toEqual(want);
    }
    expect(valuesOf(() => softmaxAttention(q, k, v, {mask: tf.tensor(LEFT, [2, 7], 'bool')}))).toEqual(want);
    expect(valuesOf(() => softmaxAttention(q, k, v, {mask: tf.tensor(LEFT, [2, 7], 'int32')}))).toEqual(want);
    tf.dispose([q, k, v]);
  });

  test('a later token never changes an earlier output, bit for bit', () => {
    const p = problem({causal: true});
    const [k, v] = [Float32Array.from(p.k), Float32Array.from(p.v)];
    for (let bh = 0; bh < B * H; bh++) {
      k.fill(1e9, (bh * 7 + 5) * 4, (bh + 1) * 7 * 4);
      v.fill(-1e9, (bh * 7 + 5) * 6, (bh + 1) * 7 * 6);
    }
    const early = (values: number[]) => values.filter((_, i) => Math.floor(i / 6) % 7 < 5);
    const run = (p: SoftmaxProblem) =>
      valuesOf(() => softmaxAttention(...(tensors(p) as [tf.Tensor, tf.Tensor, tf.Tensor]), {causal: true}));
    expect(early(run({...p, k, v}))).toEqual(early(run(p)));
  });

  test('scores of 1e4 neither overflow nor lose the largest', () => {
    const output = valuesOf(() =>
      softmaxAttention([[[100], [-100]]], [[[100], [-100]]], [[[1], [2]]], {scale: 1}),
    );
    expect(output).toEqual([1, 2]);
  });

  test('NaN in an unmasked key reaches the outputs that see it', () => {
    const output = valuesOf(() => softmaxAttention([[[1], [1]]], [[[1], [Number.NaN]]], [[[1], [2]]]));
    expect(output.every(Number.isNaN)).toBe(true);
  });

  test.each([false, true])('BNHD gives the values of BHND, forward and backward (causal = %s)', (causal) => {
    const p = problem({mask: LEFT});
    const options = {causal, mask: [LEFT.slice(0, 7), LEFT.slice(7)]};
    const swap = (x: tf.Tensor) => tf.transpose(x, [0, 2, 1, 3]);
    const run = (format: 'BHND' | 'BNHD') =>
      tf.tidy(() => {
        const inputs = tensors(p).map((x) => (format === 'BHND' ? x : swap(x)));
        const f = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) =>
          softmaxAttention(q, k, v, {...options, dataFormat: format});
        const all = [
          f(inputs[0], inputs[1], inputs[2]),
          ...tf.grads((q, k, v) => tf.sum(tf.square(f(q, k, v))))(inputs),
        ];
        return all.map((x) => Array.from((format === 'BHND' ? x : swap(x)).dataSync()));
      });
    const [want, got] = [run('BHND'), run('BNHD')];
    expect(got.map((values, i) => difference(values, want[i], {rms: 1e-7, max: 1e-6}))).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  test('inputs of rank 3 are one head', () => {
    const [q, k, v] = [randomNumbers(2 * 5 * 4, 1), randomNumbers(2 * 5 * 4, 2), randomNumbers(2 * 5 * 3, 3)];
    const four = valuesOf(() =>
      softmaxAttention(tf.tensor(q, [2, 1, 5, 4]), tf.tensor(k, [2, 1, 5, 4]), tf.tensor(v, [2, 1, 5, 3])),
    );
    tf.tidy(() => {
      const three = softmaxAttention(
        tf.tensor(q, [2, 5, 4]),
        tf.tensor(k, [2, 5, 4]),
        tf.tensor(v, [2, 5, 3]),
      );
      expect(three.shape).toEqual([2, 5, 3]);
      expect(Array.from(three.dataSync())).toEqual(four);
    });
  });

  test('int32, bool and nested arrays are cast', () => {
    const int = [
      [
        [1, 0],
        [0, 1],
      ],
    ];
    const want = valuesOf(() =>
      softmaxAttention(
        tf.tensor(int, [1, 2, 2], 'float32'),
        tf.tensor(int, [1, 2, 2], 'float32'),
        tf.tensor(int, [1, 2, 2], 'float32'),
      ),
    );
    for (const dtype of ['int32', 'bool'] as const) {
      expect(
        valuesOf(() =>
          softmaxAttention(
            tf.tensor(int, [1, 2, 2], dtype),
            tf.tensor(int, [1, 2, 2], dtype),
            tf.tensor(int, [1, 2, 2], dtype),
          ),
        ),
      ).toEqual(want);
    }
    expect(valuesOf(() => softmaxAttention(int, int, int))).toEqual(want);
  });

  test('no queries give an empty output, no keys give 0', () => {
    tf.tidy(() => {
      expect(
        softmaxAttention(tf.zeros([1, 2, 0, 4]), tf.zeros([1, 2, 3, 4]), tf.zeros([1, 2, 3, 5])).shape,
      ).toEqual([1, 2, 0, 5]);
      const none = softmaxAttention(tf.ones([1, 2, 3, 4]), tf.ones([1, 2, 0, 4]), tf.ones([1, 2, 0, 5]));
      expect(none.shape).toEqual([1, 2, 3, 5]);
      expect(Array.from(none.dataSync()).every((x) => x === 0)).toBe(true);
    });
  });

  test('second-order gradients equal central differences of the first', () => {
    const p = problem({Nq: 3, Nk: 3, r: 2, d: 2, causal: true, mask: [1, 0, 1, 1, 1, 1]});
    const dOutput = randomNumbers(B * H * 3 * 2, 4);
    const u = randomNumbers(p.q.length, 5);
    const along = (at: Partial<SoftmaxProblem>) =>
      softmaxBackward({...p, ...at}, dOutput).dq.reduce((sum, g, i) => sum + g * u[i], 0);
    const want = (['q', 'k', 'v'] as const).map((name) =>
      centralDifferences((x) => along({[name]: x}), p[name]),
    );
    const got = tf.tidy(() => {
      const dy = tf.tensor(dOutput, [B, H, 3, 2]);
      const inner = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) =>
        tf.grad((q) => tf.sum(tf.mul(softmaxAttention(q, k, v, optionsOf(p)), dy)))(q);
      const direction = tf.tensor(u, [B, H, 3, 2]);
      return tf
        .grads((q, k, v) => tf.sum(tf.mul(inner(q, k, v), direction)))(tensors(p))
        .map((x) => Array.from(x.dataSync()));
    });
    expect(got.map((values, i) => difference(values, want[i], FLOAT32, 1e-6))).toEqual([null, null, null]);
  });

  test('batch mates do not change a row', () => {
    const p = problem();
    const half = (x: ArrayLike<number>) => Float32Array.from(x).subarray(0, x.length / 2);
    const both = valuesOf(() => softmaxAttention(...(tensors(p) as [tf.Tensor, tf.Tensor, tf.Tensor])));
    const alone = valuesOf(() =>
      softmaxAttention(
        ...(tensors({...p, B: 1, q: half(p.q), k: half(p.k), v: half(p.v)}) as [
          tf.Tensor,
          tf.Tensor,
          tf.Tensor,
        ]),
      ),
    );
    expect(both.slice(0, alone.length)).toEqual(alone);
  });

  test('forward, backward and second order leave no tensors behind and keep their inputs', async () => {
    const p = problem({mask: LEFT, causal: true});
    const inputs = tensors(p);
    const mask = tf.tensor(LEFT, [2, 7]);
    const f = (q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) =>
      tf.sum(softmaxAttention(q, k, v, {causal: true, mask}));
    await expectNoLeak(() => {
      take(softmaxAttention(inputs[0], inputs[1], inputs[2], {causal: true, mask}));
      tf.dispose(tf.grads(f)(inputs));
      tf.dispose(tf.grad((q) => tf.sum(tf.grad((q) => f(q, inputs[1], inputs[2]))(q)))(inputs[0]));
    });
    expect(inputs.every((x) => !x.isDisposed)).toBe(true);
    tf.dispose([...inputs, mask]);
  });
});
