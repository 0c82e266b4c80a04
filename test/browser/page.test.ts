/** What a user's page does, with the built package: load, run, stream and train a model on webgl. */
import {join} from 'node:path';
import {describeInBrowser} from '../helpers/browser';
import {buildIfStale} from '../helpers/dist';

interface Used {
  backend: string;
  hasDocument: boolean;
  loadedDiffers: number;
  streamDiffers: number;
  losses: number[];
  leaked: number;
  shape: number[];
}

beforeAll(buildIfStale, 120000);

describeInBrowser(
  'a page',
  (browser) => {
    test.each([
      ['that loads script tags', '/script.html', true],
      ['that loads the ES module', '/module.html', true],
      ['with a worker that loads the scripts', '/worker.html', false],
    ])(
      '%s loads, runs, streams and trains a model on webgl',
      async (_, page, hasDocument) => {
        const used = await browser().call<Used>(page, 'useModel', 'webgl');
        expect(used).toMatchObject({
          backend: 'webgl',
          hasDocument,
          loadedDiffers: 0,
          leaked: 0,
          shape: [1, 24, 3],
        });
        expect(used.streamDiffers).toBeLessThan(1e-4);
        expect(used.losses).toHaveLength(6);
        expect(used.losses[5]).toBeLessThan(used.losses[0] * 0.8);
      },
      300000,
    );
  },
  join(__dirname, 'site.mjs'),
);
