/** `npm start` at a small size: real text, the built package, every part of it. */
import {existsSync, mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {buildIfStale, run} from './helpers/dist';

jest.setTimeout(300000);

describe('the main job', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tfla-main-job-'));
  beforeAll(buildIfStale);
  afterAll(() => rmSync(folder, {recursive: true}));

  it('trains on Moby-Dick, saves, writes several hundred characters, and compares decoding', async () => {
    const args = ['--steps', '24', '--out', join(folder, 'model'), '--positions', '16,64'];
    const {code, stdout, stderr} = await run(['examples/node/main_job.mjs', ...args]);
    expect({code, stderr: code === 0 ? '' : stderr}).toEqual({code: 0, stderr: ''});
    expect(stdout).toMatch(/Moby-Dick, 1191307 characters/);
    const losses = [...stdout.matchAll(/ loss ([\d.]+) /g)].map((match) => Number(match[1]));
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
    expect(existsSync(join(folder, 'model', 'weights.bin'))).toBe(true);
    const written = /\n(The whale .*?)\n\nDecoding/s.exec(stdout)![1]!;
    expect(written.length).toBeGreaterThanOrEqual(500);

    const rows = [...stdout.matchAll(/^ +(\d+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) /gm)].map((match) =>
      match.slice(1).map((cell) => Number(cell.replaceAll(',', ''))),
    );
    expect(rows.map(([position]) => position)).toEqual([16, 64]);
    const [near, far] = rows as [number[], number[]];
    expect(far[2]).toBe(near[2]); // the state
    expect(far[4]).toBe(4 * near[4]!); // the cache
  });
});
