/** The webgl kernels in a real browser: what they ask of the GPU, and what must hold beyond the list of cases. */
import {describeInBrowser} from '../helpers/browser';
import {FLOAT32, HALF} from '../helpers/compare';
import type {Sizes, Spread} from './kernel_checks';
import type {CutSizes} from './texture_checks';

const LENGTHS = [100, 37, 64, 65, 7, 128, 333, 2, 200, 90, 255];
const MANY_CHUNKS = 2100;

/** What compareCut answers. */
interface Cut {
  faults: string[];
  moreDraws: number;
  left: [tensors: number, buffers: number];
}

describeInBrowser('webgl kernels', (browser) => {
  describe('in float32', () => {
    const call = <T>(name: string, ...args: unknown[]) => browser().call<T>('float', name, ...args);
    beforeAll(() => call('start', 'webgl'), 60000);
    afterAll(() => browser().closePage('float'));

    test.each<[string, Sizes, number, number]>([
      ['of a short sequence', {N: 200}, 5, 13],
      ['over many chunks', {N: MANY_CHUNKS}, 6, 15],
      ['of odd sizes', {N: 201, r: 7, d: 9}, 5, 13],
      ['of [B,N,H,.] inputs', {N: 200, dataFormat: 'BNHD'}, 5, 13],
      ['without causality', {N: 200, causal: false}, 5, 12],
    ])('a call %s takes few draws', async (_, sizes, forward, both) => {
      expect((await call<{draws: number}>('countCall', sizes, false)).draws).toBeLessThanOrEqual(forward);
      expect((await call<{draws: number}>('countCall', sizes, true)).draws).toBeLessThanOrEqual(both);
    });

    test.each<[string, Omit<Sizes, 'N'>]>([
      ['causal', {r: 10}],
      ['non-causal', {r: 10, causal: false}],
      ['[B,N,H,.]', {r: 10, dataFormat: 'BNHD'}],
      ['odd-sized, one head', {H: 1, r: 5, d: 3}],
    ])('ten new lengths compile nothing, forward and backward (%s)', async (_, sizes) => {
      const [first, ...others] = await call<number[]>(
        'compilesFor',
        LENGTHS.map((N) => ({...sizes, N})),
        true,
      );
      expect(first).toBeGreaterThan(0);
      expect(others).toEqual(others.map(() => 0));
    });

    test('other batches and numbers of heads compile nothing', async () => {
      const sizes = [
        [2, 3],
        [3, 2],
        [5, 4],
        [2, 16],
      ].map(([B, H]) => ({B, H, N: 70, r: 6}));
      const [, ...others] = await call<number[]>('compilesFor', sizes, true);
      expect(others).toEqual(others.map(() => 0));
    });

    test.each<[string, Sizes]>([
      ['65536 tokens', {N: 65536, H: 1, r: 4, d: 4}],
      ['20000 tokens without causality', {N: 20000, H: 1, causal: false}],
      ['3000 tokens of [B,N,H,.], odd sizes', {N: 3001, H: 3, r: 5, d: 7, dataFormat: 'BNHD'}],
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

    test('decoding takes 3 draws and no compilation a token, and agrees with one call', async () => {
      expect(await call('decode', {N: 40, H: 3, r: 7, d: 5}, FLOAT32)).toEqual({
        draws: [3],
        compiles: 0,
        fault: null,
      });
    });

    test('nothing is left behind', async () => {
      expect(await call('leftBehind', {N: 100, masked: true}, 3)).toEqual({tensors: 0, buffers: 0});
    });

    test.each<[string, number, CutSizes]>([
      ['a batch', 40, {B: 5, H: 1, N: 70, masked: true, state: true}],
      ['heads', 40, {H: 7, N: 70}],
      [
        'heads of [B,N,H,.], odd sizes',
        40,
        {B: 2, H: 5, N: 61, r: 7, d: 5, dataFormat: 'BNHD', masked: true},
      ],
      ['a sequence', 40, {H: 1, N: 301, masked: true, state: true}],
      ['a sequence of [B,N,H,.]', 40, {H: 1, N: 201, d: 9, dataFormat: 'BNHD'}],
      ['keys', 40, {H: 1, N: 301, Nq: 20, causal: false, masked: true, state: true}],
      ['queries', 40, {H: 1, N: 20, Nq: 601, causal: false, masked: true}],
      ['many features and few tokens', 70, {H: 2, N: 60, r: 120, d: 20, state: true}],
    ])(
      '%s larger than a texture is computed in parts',
      async (_, side, sizes) => {
        const {faults, moreDraws, left} = await call<Cut>('compareCut', side, sizes, FLOAT32, true);
        expect({faults, left}).toEqual({faults: [], left: [0, 0]});
        expect(moreDraws).toBeGreaterThan(1.5);
      },
      120000,
    );

    test.each<[string, Sizes, RegExp]>([
      ['queries', {N: 500}, /^linearAttention: q \[1,2,500,8\] needs 8000 texels/],
      [
        'features',
        {N: 5, r: 90, d: 3},
        /^linearAttention: the texture of mapped queries, keys and values, for one token of one head, needs 3 x 45 texels/,
      ],
    ])('%s that no part of would fit into a texture: an error that names them', async (_, sizes, text) => {
      const {error, left} = await call<{error: string; left: number}>('messageWithTextures', 40, sizes);
      expect(error).toMatch(text);
      expect(error).toContain('40 x 40');
      expect(left).toBe(0);
    });
  });

  describe('in half floats', () => {
    const call = <T>(name: string, ...args: unknown[]) => browser().call<T>('half', name, ...args);
    beforeAll(() => call('start', 'webgl', {halfFloat: true}), 60000);
    afterAll(() => browser().closePage('half'));

    test('a warning is given once, and training is refused with a reason', async () => {
      const {error, warnings} = await call<{error: null; warnings: string[]}>('messages', {N: 9}, false, 3);
      expect(error).toBeNull();
      expect(warnings.filter((line) => line.includes('half floats'))).toHaveLength(1);
      const refused = await call<{error: string}>('messages', {N: 9}, true);
      expect(refused.error).toMatch(/gradients are refused on webgl in half floats: .*another backend/);
    });

    test('50 repeats give the same bits', async () => {
      expect(await call('differentResults', {N: 150, B: 2, r: 6, d: 9}, 50, false)).toBe(1);
    }, 120000);

    const SPREADS: [string, Spread][] = [
      ['N(0,1)', {}],
      ['N(4,2)', {mean: 4, deviation: 2}],
      ['N(0,1) with v x 100', {values: 100}],
    ];
    test.each(
      [1024, 16384].flatMap((N) =>
        [true, false].flatMap((causal) =>
          SPREADS.map(([name, spread]) => [N, name, causal, spread] as const),
        ),
      ),
    )(
      '%i tokens of %s stay finite and within 2e-3 (causal: %s)',
      async (N, _, causal, spread) => {
        const sizes: Sizes = {N, H: 1, r: 64, d: 16, causal};
        expect(await call('compareWithPlain', sizes, spread, HALF)).toEqual({fault: null, nonFinite: 0});
      },
      120000,
    );

    test.each<[string, CutSizes]>([
      ['a sequence', {H: 1, N: 1500, state: true, shift: 12}],
      ['keys', {H: 1, N: 1500, Nq: 6, causal: false, state: true, shift: 12}],
    ])(
      '%s larger than a texture is handed on by means, whose sums would overflow',
      async (_, sizes) => {
        const {faults, moreDraws} = await call<Cut>('compareCut', 64, sizes, HALF, false);
        expect(faults).toEqual([]);
        expect(moreDraws).toBeGreaterThan(1.5);
      },
      120000,
    );
  });

  describe('with WebGL 1 only', () => {
    const call = <T>(name: string, ...args: unknown[]) => browser().call<T>('webgl1', name, ...args);
    beforeAll(() => call('start', 'webgl', {webgl1: true}), 60000);
    afterAll(() => browser().closePage('webgl1'));

    test('the composed form gives the numbers', async () => {
      const sizes: Sizes = {N: 70, r: 6, d: 5};
      expect(await call('compareWithPlain', sizes, {}, FLOAT32)).toEqual({fault: null, nonFinite: 0});
      expect(await call('decode', {N: 3}, FLOAT32)).toMatchObject({fault: null});
    }, 120000);
  });
});
