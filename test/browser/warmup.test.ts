/** warmup on the backends that compile. */
import {describeInBrowser} from '../helpers/browser';

interface Warmed {
  result: {programs: number; seconds: number};
  compiled: {phase: string; done: number; total: number};
  reports: number;
  compiles: number;
  later: number;
  distance: number;
  leaked: number;
}

describeInBrowser('warmup in a browser', (browser) => {
  describe.each(['webgl', 'webgpu'])('on %s', (backend) => {
    let warmed: Warmed;

    beforeAll(async () => {
      await browser().call(backend, 'start', backend);
      warmed = await browser().call<Warmed>(backend, 'warmUpModel');
    }, 240000);
    afterAll(() => browser().closePage(backend));

    test('compiles ahead, with progress for each program', () => {
      const {programs} = warmed.result;
      expect(programs).toBeGreaterThan(20);
      // What depends on values, and what only a real run uploads or reads, is compiled by that run.
      expect(warmed.compiles).toBeLessThan(1.2 * programs);
      expect(warmed.compiled).toEqual({phase: 'compile', done: programs, total: programs});
      expect(warmed.reports).toBe(programs + 1);
    });

    test('a call of the same sizes compiles at most the slice that this test adds', () => {
      expect(warmed.later).toBeLessThanOrEqual(1);
    });

    test('the model computes the same afterwards by a call and by steps, and nothing is left behind', async () => {
      expect(warmed.distance).toBeLessThan(1e-5);
      expect(warmed.leaked).toBe(0);
      expect(await browser().call(backend, 'takeDeviceErrors')).toEqual([]);
    });
  });
});
