/** gelu: values and derivatives against 40-digit references, on kernels and composed. */
import * as tf from '@tensorflow/tfjs-core';
import '../kernels';
import {gelu} from '../ops/gelu';
import {composedGelu, composedGeluGrad} from '../src/gelu/composed';
import {disableSimd} from '../src/wasm/instance';
import {describeOnBackends, expectNoLeak} from './helpers/backends';

/** x, then gelu, its first and second derivative; then the same of the tanh form (mpmath, 40 digits). */
const REFERENCE = [
  [-12, -2.13177853449e-32, -2.55789566167e-31, -3.04786490464e-30, 0.0, 1.36332120779e-62, 8.840060941e-61],
  [
    -9.5, -9.96978932159e-21, -9.46909347383e-20, -8.89377798547e-19, -6.67892874727e-33, -1.38987321923e-31,
    -2.86506278709e-30,
  ],
  [
    -6, -5.91952587023e-9, -3.54687094539e-8, -2.06580016894e-7, -8.43964670076e-11, -7.70997393095e-10,
    -6.82424727416e-9,
  ],
  [
    -4.25, -4.54262345435e-5, -0.000192115679525, -0.000766480599443, -2.01420358449e-5, -0.000105282184153,
    -0.000512541534864,
  ],
  [
    -3, -0.00404969409489, -0.0119456472042, -0.0310229388836, -0.00363739208177, -0.011584166631,
    -0.0317676588861,
  ],
  [
    -2, -0.0455002638964, -0.0852318010782, -0.107981933026, -0.0454023059122, -0.0860992566236,
    -0.107875079951,
  ],
  [-1.25, -0.132062217084, -0.122661583069, 0.0799089748577, -0.13228579703, -0.12249263225, 0.0811809798049],
  [
    -0.75, -0.169970514283, 0.000774278260765, 0.432885058723, -0.170039444834, 0.00106174386259,
    0.432307490271,
  ],
  [-0.5, -0.154268769363, 0.132504875344, 0.616114321838, -0.154285990175, 0.132630096465, 0.615506895116],
  [-0.1, -0.0460172168989, 0.420476906798, 0.789935569243, -0.0460172495811, 0.420478209551, 0.789896758472],
  [
    -0.001, -0.000499601081497, 0.499202115667, 0.797883762919, -0.000499601081497, 0.499202115669,
    0.797883758969,
  ],
  [0, 0.0, 0.5, 0.797884560803, 0.0, 0.5, 0.797884560803],
  [
    0.0001, 5.00039881595e-5, 0.500079788454, 0.797884552824, 5.00039881595e-5, 0.500079788454,
    0.797884552785,
  ],
  [0.3, 0.185373435387, 0.732327775511, 0.728450722197, 0.185370932272, 0.732295460319, 0.728148443081],
  [0.75, 0.580029485717, 0.999225721739, 0.432885058723, 0.579960555166, 0.998938256137, 0.432307490271],
  [1, 0.841344746069, 1.08331547059, 0.241970724519, 0.841191990608, 1.08296408385, 0.242148197984],
  [1.7, 1.62423876649, 1.11531796479, -0.0837036873279, 1.62410594876, 1.11591462754, -0.0821339879213],
  [2.5, 2.48447583669, 1.03761108591, -0.0744952770977, 2.48491573391, 1.03795157621, -0.0762453920736],
  [3.3, 3.2984046524, 1.00520105409, -0.0153136397358, 3.29868872397, 1.00474971522, -0.0152248463586],
  [5, 4.99999856674, 1.00000714695, -3.41945488389e-5, 4.99999977082, 1.00000154636, -9.934132225e-6],
  [8, 8.0, 1.0, -3.13240807179e-13, 8.0, 1.0, -7.0458213961e-19],
  [20, 20.0, 1.0, -8.35238971904e-53, 20.0, 1.0, 0.0],
];
const X = REFERENCE.map(([x]) => x);
const FORMS = ['none', 'tanh'] as const;

const column = (form: 'none' | 'tanh', order: number) =>
  REFERENCE.map((row) => row[1 + order + (form === 'tanh' ? 3 : 0)]);

/** Largest error over max(1, |reference|). */
function worst(got: ArrayLike<number>, want: number[]): number {
  return Math.max(...want.map((value, i) => Math.abs(got[i] - value) / Math.max(1, Math.abs(value))));
}

const derivative = (form: 'none' | 'tanh', order: number): ((x: tf.Tensor) => tf.Tensor) =>
  order === 0 ? (x) => gelu(x, {approximate: form}) : tf.grad(derivative(form, order - 1));

const at = (form: 'none' | 'tanh', order: number, points: number[]) =>
  tf.tidy(() => derivative(form, order)(tf.tensor1d(points)).dataSync());

describeOnBackends('gelu', (backend) => {
  describe.each(FORMS)("with approximate '%s'", (form) => {
    test('has the right values', () => {
      expect(worst(at(form, 0, X), column(form, 0))).toBeLessThan(1.5e-7);
    });

    test('has the right gradient', () => {
      expect(worst(at(form, 1, X), column(form, 1))).toBeLessThan(3e-7);
    });

    test('has the right second gradient', () => {
      expect(worst(at(form, 2, X), column(form, 2))).toBeLessThan(2e-6);
    });

    test('has a third gradient that is the slope of the second', () => {
      const points = [-1.5, -0.3, 0.2, 1.1];
      const h = 1 / 64;
      const up = at(
        form,
        2,
        points.map((x) => x + h),
      );
      const down = at(
        form,
        2,
        points.map((x) => x - h),
      );
      const want = points.map((_, i) => (up[i] - down[i]) / (2 * h));
      expect(worst(at(form, 3, points), want)).toBeLessThan(1e-3);
    });

    test('scales its gradient by the incoming one', () => {
      const dy = X.map((_, i) => (i % 2 === 0 ? -2 : 0.5));
      const got = tf.tidy(() =>
        tf
          .grad((x) => tf.sum(tf.mul(gelu(x, {approximate: form}), dy)))(tf.tensor1d(X))
          .dataSync(),
      );
      expect(
        worst(
          got,
          column(form, 1).map((slope, i) => slope * dy[i]),
        ),
      ).toBeLessThan(1e-6);
    });

    test('gives the same for every length', () => {
      const all = at(form, 0, X);
      const slopes = at(form, 1, X);
      for (let length = 1; length <= 9; length++) {
        const some = X.slice(3, 3 + length);
        expect([...at(form, 0, some)]).toEqual([...all.slice(3, 3 + length)]);
        expect([...at(form, 1, some)]).toEqual([...slopes.slice(3, 3 + length)]);
      }
    });

    test('keeps NaN to itself and takes infinities to their limits', () => {
      const special = [1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2];
      const [, nan, high, low] = at(form, 0, special);
      expect([nan, high, Math.abs(low)]).toEqual([Number.NaN, Number.POSITIVE_INFINITY, 0]);
      const slopes = at(form, 1, special);
      expect([slopes[1], slopes[2], Math.abs(slopes[3])]).toEqual([Number.NaN, 1, 0]);
      expect(slopes[0]).toBe(at(form, 1, [1])[0]);
    });

    test('leaves no tensors behind, first and second order', async () => {
      const x = tf.tensor1d(X);
      await expectNoLeak(() => {
        gelu(x, {approximate: form}).dispose();
        derivative(form, 1)(x).dispose();
        derivative(form, 2)(x).dispose();
      });
      x.dispose();
    });

    test('agrees with its composed form', () => {
      const [value, slope] = tf.tidy(() => {
        const x = tf.tensor1d(X);
        return [composedGelu(x, form).dataSync(), composedGeluGrad(x, tf.onesLike(x), form).dataSync()];
      });
      expect(worst(value, column(form, 0))).toBeLessThan(1e-6);
      expect(worst(slope, column(form, 1))).toBeLessThan(1e-6);
    });
  });

  test('keeps its relative accuracy far below 0, where 1 + erf cancels', () => {
    const got = at('none', 0, X);
    REFERENCE.filter(([x]) => x < 0).forEach(([x, want], i) => {
      // The rounding of x^2 / 2 in single precision moves the exponential by x^2 6e-8.
      expect(Math.abs(got[i] / want - 1)).toBeLessThan(3e-7 + x * x * 1e-7);
    });
  });

  test('runs one kernel forward and one backward', async () => {
    const x = tf.tensor2d([X]);
    const {kernelNames} = await tf.profile(() => {
      const {value, grad} = tf.valueAndGrad((t) => tf.sum(gelu(t)))(x);
      value.dispose();
      grad.dispose();
    });
    expect(kernelNames).toEqual(expect.arrayContaining(['Gelu', 'GeluGrad']));
    expect(kernelNames).not.toContain('Erf');
    x.dispose();
  });

  if (backend === 'wasm') {
    test('gives the same numbers where SIMD is missing', () => {
      try {
        disableSimd(true);
        expect(worst(at('none', 0, X), column('none', 0))).toBeLessThan(1e-6);
        expect(worst(at('tanh', 1, X), column('tanh', 1))).toBeLessThan(1e-6);
      } finally {
        disableSimd(false);
      }
    });
  }
});
