/** Golden g4 through every feature map on the GPU backends of a real browser, twice, in both orders. */
import {join} from 'node:path';
import {mapCases} from '../conformance/map_case';
import {describeInBrowser} from '../helpers/browser';
import {goldenCases} from '../helpers/golden';

const IDS = mapCases(goldenCases('g4_feature_maps.json')).map(({id}) => id);
const CHOSEN = process.env.BROWSER_BACKENDS?.split(',');
/** Squares of half floats, and sums of them as small as 0.03 to divide by: 3e-3 is what the format gives. */
const fitsHalfFloats = (id: string): boolean => !id.includes('rebased');
const SUITES = [
  {name: 'webgl', backend: 'webgl', start: {}},
  {name: 'webgl with half-float textures', backend: 'webgl', start: {halfFloat: true}},
  {name: 'webgpu', backend: 'webgpu', start: {}},
];

describeInBrowser(
  'feature maps in a browser',
  (browser) => {
    for (const {name, backend, start} of SUITES) {
      (CHOSEN === undefined || CHOSEN.includes(backend) ? describe : describe.skip)(name, () => {
        beforeAll(async () => {
          expect(await browser().call(name, 'start', backend, start)).toBe(backend);
        }, 60000);
        afterAll(() => browser().closePage(name));

        const ids = IDS.filter((id) => !('halfFloat' in start) || fitsHalfFloats(id));
        test.each(ids)(
          '%s',
          async (id) => {
            expect(await browser().call(name, 'runMap', id)).toEqual([]);
          },
          120000,
        );

        test('every case again in the reverse order', async () => {
          for (const id of [...ids].reverse()) {
            expect([id, await browser().call(name, 'runMap', id)]).toEqual([id, []]);
          }
        }, 600000);
      });
    }
  },
  join(__dirname, 'maps_page.ts'),
);
