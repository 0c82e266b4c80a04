/**
 * The one list of cases in a real browser: webgl, webgl with half-float textures, webgpu, and the composed form on
 * both. Compiling on a software GPU takes long, so a subset that covers every code path runs by default;
 * FULL_BROWSER=1 runs the whole list. Buffers are poisoned with NaN before each case, and each shape runs twice, in both
 * orders.
 */
import {CASES, type ConformanceCase} from '../conformance/cases';
import {goldenList} from '../conformance/golden_case';
import {type Browser, describeInBrowser} from '../helpers/browser';
import {goldenCases} from '../helpers/golden';
import type {PageRunOptions, StartOptions} from './page';
import {fitsHalfFloats, inSubset, subsetNames} from './subset';

const WHOLE = process.env.FULL_BROWSER === '1';
/** BROWSER_BACKENDS=webgl (or several with commas) narrows the suite while working on one. */
const CHOSEN = process.env.BROWSER_BACKENDS?.split(',');
const ALL: ConformanceCase[] = [...CASES, ...goldenList((file) => goldenCases(`${file}.json`))];
const CHOSEN_CASES = ALL.filter((c) => WHOLE || inSubset(c));

interface Suite {
  name: string;
  backend: string;
  start?: StartOptions;
  run?: PageRunOptions;
  /** Further options of the second time, in the reverse order. */
  again?: PageRunOptions;
}

const SUITES: Suite[] = [
  {name: 'webgl', backend: 'webgl'},
  {name: 'webgl with half-float textures', backend: 'webgl', start: {halfFloat: true}},
  // Whole sequences first, then the form for devices that they do not fill.
  {name: 'webgpu', backend: 'webgpu', again: {segmentLength: 32}},
  {name: 'the composed form on webgl', backend: 'webgl', run: {form: 'composed'}},
  {name: 'the composed form on webgpu', backend: 'webgpu', run: {form: 'composed'}},
];

describeInBrowser('conformance in a browser', (browser) => {
  for (const {name, backend, start = {}, run = {}, again = {}} of SUITES) {
    (CHOSEN === undefined || CHOSEN.includes(backend) ? describe : describe.skip)(name, () => {
      const runCase = (page: Browser, id: string, options: PageRunOptions) =>
        page.call<string[]>(name, 'runCases', id, {...run, ...options});

      const ids = CHOSEN_CASES.filter((c) => !start.halfFloat || fitsHalfFloats(c)).map(({id}) => id);

      beforeAll(async () => {
        expect(await browser().call(name, 'start', backend, start)).toBe(backend);
      }, 60000);
      afterAll(() => browser().closePage(name));

      test.each(ids)(
        '%s',
        async (id) => {
          expect(await runCase(browser(), id, {poisoned: true})).toEqual([]);
        },
        120000,
      );

      test('every case again in the reverse order', async () => {
        for (const id of [...ids].reverse()) {
          expect(await runCase(browser(), id, again)).toEqual([]);
        }
      }, 1200000);
    });
  }
});

test('every case named for the browsers exists', () => {
  const ids = new Set(ALL.map(({id}) => id));
  expect(subsetNames().filter((id) => !ids.has(id))).toEqual([]);
});
