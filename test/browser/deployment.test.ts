/** The built package in a page as it is deployed: content security policy, worker, model by URL kept in the browser. */
import {join} from 'node:path';
import {describeInBrowser} from '../helpers/browser';
import {buildIfStale} from '../helpers/dist';

beforeAll(buildIfStale, 120000);

interface Seen {
  warnings: string[];
  violations: string[];
}

describeInBrowser(
  'a deployed page',
  (browser) => {
    const works = {leaked: 0, shape: [1, 24, 3]};
    const ours = ({warnings}: Seen) => warnings.filter((text) => text.startsWith('tfjs-linear-attention'));

    test.each(['cpu', 'wasm', 'webgl'])(
      "needs no more of a content security policy than 'wasm-unsafe-eval' (%s)",
      async (backend) => {
        expect(await browser().call('/policy.html', 'trainHere', backend)).toMatchObject({backend, ...works});
        const seen = await browser().call<Seen>('/policy.html', 'whatWasSeen');
        expect({...seen, warnings: ours(seen)}).toEqual({warnings: [], violations: []});
      },
      300000,
    );

    test("without 'wasm-unsafe-eval' works in plain JavaScript, and says once what is missing", async () => {
      expect(await browser().call('/no_wasm.html', 'trainHere', 'cpu')).toMatchObject({
        backend: 'cpu',
        ...works,
      });
      const seen = await browser().call<Seen>('/no_wasm.html', 'whatWasSeen');
      expect(ours(seen)).toEqual([
        expect.stringMatching(/WebAssembly is refused here.*plain JavaScript.*script-src 'wasm-unsafe-eval'/),
      ]);
    }, 300000);

    test('writes in a worker what the same model writes here', async () => {
      const {written, here} = await browser().call<{written: number[]; here: number[]}>(
        '/policy.html',
        'writeInWorker',
      );
      expect(written).toHaveLength(8);
      expect(written).toEqual(here);
    }, 120000);

    test('explains a worker that does not start', async () => {
      expect(await browser().call('/open.html', 'brokenWorker')).toMatch(
        /generation.remote: the worker failed/,
      );
    }, 120000);

    test('keeps a model by URL from visit to visit, and without a network', async () => {
      const {asked, sums} = await browser().call<{asked: number[]; sums: number[]}>('/policy.html', 'visits');
      // Everything; model.json; model.json, of a new version; nothing; model.json in vain; nothing.
      expect(asked).toEqual([2, 1, 1, 0, 1, 0]);
      expect(new Set(sums).size).toBe(1);
    }, 120000);

    test("keeps a model in tfjs's own IndexedDB store", async () => {
      expect(await browser().call('/open.html', 'throughIndexedDB')).toBe(0);
    }, 120000);
  },
  join(__dirname, 'deployment_site.mjs'),
);
