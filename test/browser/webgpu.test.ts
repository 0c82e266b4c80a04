/** The webgpu kernels in a real browser: what they ask of the device, and what must hold beyond the list of cases. */
import {describeInBrowser} from '../helpers/browser';
import {FLOAT32} from '../helpers/compare';
import type {Sizes} from './kernel_checks';

const LENGTHS = [100, 37, 64, 65, 7, 128, 333, 2, 200, 90, 255];

/** A walk over whole sequences, and the form for devices that one walk a head would not fill. */
const FORMS = [
  ['walked as a whole', 4096],
  ['in segments', 32],
] as const;

describeInBrowser('webgpu kernels', (browser) => {
  const call = <T>(name: string, ...args: unknown[]) => browser().call<T>('webgpu', name, ...args);
  beforeAll(() => call('start', 'webgpu'), 60000);
  // Errors of the device throw nothing.
  afterEach(async () => expect(await call('takeDeviceErrors')).toEqual([]));

  describe.each(FORMS)('%s', (form, segmentLength) => {
    beforeAll(() => call('forceSegmentLength', segmentLength));
    afterAll(() => call('forceSegmentLength', null));

    const whole = form === 'walked as a whole';
    test.each<[string, Sizes, number, number]>([
      ['causal', {N: 200}, whole ? 1 : 3, whole ? 4 : 7],
      ['masked, odd sizes', {N: 201, r: 7, d: 9, masked: true}, whole ? 1 : 3, whole ? 4 : 7],
      ['[B,N,H,.]', {N: 200, dataFormat: 'BNHD'}, whole ? 1 : 3, whole ? 4 : 7],
      ['non-causal', {N: 200, causal: false}, 3, 7],
    ])(
      'a %s call takes few dispatches',
      async (_, sizes, forward, both) => {
        // A mask is compared with 0 by a dispatch of tfjs's.
        const more = sizes.masked ? 1 : 0;
        expect((await call<{draws: number}>('countCall', sizes, false)).draws).toBeLessThanOrEqual(
          forward + more,
        );
        expect((await call<{draws: number}>('countCall', sizes, true)).draws).toBeLessThanOrEqual(
          both + more,
        );
      },
      120000,
    );

    test.each<[string, Omit<Sizes, 'N'>]>([
      ['causal', {r: 10}],
      ['non-causal', {r: 10, causal: false}],
      ['[B,N,H,.], one feature', {r: 1, d: 3, dataFormat: 'BNHD'}],
    ])(
      'ten new lengths compile nothing, forward and backward (%s)',
      async (_, sizes) => {
        const [, ...others] = await call<number[]>(
          'compilesFor',
          LENGTHS.map((N) => ({...sizes, N})),
          true,
        );
        expect(others).toEqual(others.map(() => 0));
      },
      120000,
    );

    test.each<[string, Sizes]>([
      ['8192 tokens', {N: 8192, H: 1, r: 4, d: 4}],
      ['3000 tokens without causality', {N: 3000, H: 1, causal: false}],
      ['1001 tokens of [B,N,H,.], odd sizes', {N: 1001, H: 3, r: 5, d: 7, dataFormat: 'BNHD'}],
      ['40 tokens of 200 features', {N: 40, H: 2, r: 200, d: 20}],
    ])(
      '%s agree with double precision',
      async (_, sizes) => {
        expect(await call('compareWithPlain', sizes, {}, FLOAT32)).toEqual({fault: null, nonFinite: 0});
      },
      120000,
    );

    test('50 repeats give the same bits, forward and backward', async () => {
      expect(await call('differentResults', {N: 150, B: 2, r: 6, d: 9}, 50)).toBe(1);
    }, 120000);

    test.each([
      [70, 1e6],
      [64, -3],
      [33, Number.NaN],
      [127, Number.POSITIVE_INFINITY],
    ])('outputs before token %i do not change when what follows becomes %d', async (at, value) => {
      expect(await call('changedBefore', {N: 150, r: 6, d: 7}, at, value)).toBe(0);
    });

    test('nothing is left behind', async () => {
      expect(await call('leftBehind', {N: 100, masked: true}, 3)).toEqual({tensors: 0, buffers: 0});
    });
  });

  test('decoding takes one dispatch and no compilation a token, and agrees with one call', async () => {
    expect(await call('decode', {N: 40, H: 3, r: 70, d: 21}, FLOAT32)).toEqual({
      draws: [1],
      compiles: 0,
      fault: null,
    });
  }, 60000);

  test('more workgroups than one dimension of a dispatch takes are spread over two', async () => {
    expect(await call('farthestFromValue', 8, 8200)).toBeLessThan(1e-5);
  }, 120000);
});
