/** The demo page, built and served as static files, in a real browser. */
import {join} from 'node:path';
import {describeInBrowser} from '../helpers/browser';
import {buildIfStale, cli, root, run} from '../helpers/dist';

interface Side {
  text: string;
  figures: Record<string, string>;
  end: string;
}

interface Written {
  backend: string;
  status: string;
  linear: Side;
  softmax: Side;
  rows: string[];
  heads: {size: string; colours: number}[];
  recent: {characters: string; total: number; share: number}[];
  address: string;
  later: string[];
  elsewhere: string[];
  problems: string[];
}

const PROMPT = 'The whale ';
const MODELS = join(root, 'examples', 'browser', 'public', 'models');
/** dModel 128 in 4 heads: S [32,32] and z [32] of float32 in each head of 2 layers. */
const STATE = `${((2 * 4 * (32 * 32 + 32) * 4) / 1000).toFixed(1)} kB`;

jest.setTimeout(180000);
beforeAll(buildIfStale, 180000);

describeInBrowser(
  'the demo page',
  (browser) => {
    const visit = <T>(name: string, ...args: unknown[]) => browser().call<T>('', name, ...args);

    describe.each(['cpu', 'wasm', 'webgl', 'webgpu'])('on %s', (backend) => {
      let seen: Written;
      beforeAll(async () => {
        seen = await visit<Written>('writes', backend, {characters: 10});
      });

      it('writes with both models, without an error in the console', () => {
        expect(seen).toMatchObject({backend, problems: []});
        expect(seen.status).toBe('Done: 10 characters.');
        for (const {text} of [seen.linear, seen.softmax]) {
          expect(text.startsWith(PROMPT)).toBe(true);
          expect(text).toHaveLength(PROMPT.length + 10);
        }
      });

      it('shows the size of the state, which does not depend on the position, and of the cache', () => {
        expect(seen.linear.figures).toMatchObject({state: STATE, position: '19'});
        expect(seen.softmax.figures['cache']).toMatch(/kB/);
        expect(seen.rows[0]).toContain(STATE);
      });

      it('shows what the state holds, and weights that add up over the recent characters', () => {
        expect(seen.heads).toHaveLength(4);
        for (const {size, colours} of seen.heads) {
          expect(size).toBe('32x32');
          expect(colours).toBeGreaterThan(20);
        }
        const read = (PROMPT + seen.linear.text.slice(PROMPT.length)).slice(0, -1);
        for (const {characters, total, share} of seen.recent) {
          expect(characters.replaceAll('\u00A0', ' ').replaceAll('\u21B5', '\n')).toBe(read);
          expect(Math.abs(total - 100)).toBeLessThan(3); // each cell is rounded to a tenth
          expect(share).toBe(100); // nothing is earlier than what is shown
        }
      });

      it('fetches nothing once it is loaded, and nothing from elsewhere', () => {
        expect(seen.later).toEqual([]);
        expect(seen.elsewhere).toEqual([]);
      });
    });

    it('writes what the command line writes with the same model and seed', async () => {
      const settings = {characters: 60, temperature: 0.7, seed: 5, topk: 12};
      const seen = await visit<Written>('writes', 'wasm', settings);
      const flags = ['--temperature', '0.7', '--seed', '5', '--top-k', '12', '--max-tokens', '60'];
      for (const side of ['linear', 'softmax'] as const) {
        const folder = ['--model', join(MODELS, side), '--prompt', PROMPT, '--backend', 'wasm'];
        const {stdout} = await run([cli, 'generate', ...folder, ...flags]);
        expect(stdout.trimEnd()).toBe(seen[side].text.trimEnd());
      }
      expect(Object.fromEntries(new URLSearchParams(seen.address))).toMatchObject({
        ...{backend: 'wasm', prompt: PROMPT, temperature: '0.7', seed: '5', topk: '12'},
      });
    });

    it('says when the cache is full, and goes on without the softmax model', async () => {
      const {linear, softmax, problems} = await visit<Written>('writes', 'wasm', {
        characters: 80,
        cache: 0.1,
      });
      const tokens = Math.floor((0.1 * 1024 * 1024) / (2 * 4 * 2 * 32 * 4));
      expect(softmax.end).toContain(`full after ${tokens} tokens`);
      expect(softmax.figures['position']).toBe(`${tokens}`);
      expect(linear.text).toHaveLength(PROMPT.length + 80);
      expect({end: linear.end, problems}).toEqual({end: '', problems: []});
    });

    it('leaves out what the models do not know, and says so', async () => {
      const {linear, status} = await visit<Written>('writes', 'wasm', {prompt: 'A ☃ b', beside: 'no'});
      expect(status).toContain('☃');
      expect(linear.text).toHaveLength('A ☃ b'.length + 20);
    });

    it('says what of the address it does not take, and shows no figure that is not known', async () => {
      const query = {
        backend: 'wasm',
        characters: '1e9',
        temperature: '-1',
        topk: 'few',
        seed: '7',
        beside: 'no',
      };
      const {status, figures, fields, canRestore, after, problems} = await visit<{
        status: string;
        figures: Side['figures'];
        fields: Record<string, string>;
        canRestore: boolean;
        after: Pick<Written, 'status'> & Pick<Side, 'figures'>;
        problems: string[];
      }>('opens', query);
      const notes = ['temperature=-1', 'topk=few', 'characters=1e9'];
      const values = ['0', '0', '100000'];
      expect(status.replace(/^Ready on wasm after [\d.]+ s\. /, '')).toBe(
        notes
          .map((note, i) => `${note} in the address is not a possible value; ${values[i]} is used.`)
          .join(' '),
      );
      expect(fields).toMatchObject({characters: '100000', temperature: '0', 'top-k': '0', seed: '7'});
      expect(new Set(Object.values(figures))).toEqual(new Set(['\u2013']));
      expect(canRestore).toBe(false);
      expect(after.status).toBe('Done: 1 character.');
      expect(after.figures).toMatchObject({position: '10', '1,000 tokens': '\u2013'});
      expect(problems).toEqual([]);
    });

    it('starts by the keyboard, stops when told to, and copies what it wrote', async () => {
      const {text, copied, problems} = await visit<{text: string; copied: string; problems: string[]}>(
        'stops',
      );
      expect(text.length).toBeGreaterThan(PROMPT.length);
      expect(text.length).toBeLessThan(100000);
      expect(copied.startsWith(text.slice(PROMPT.length))).toBe(true);
      expect(problems).toEqual([]);
    });

    it('disables a backend that the browser lacks, says why, and takes the best one left', async () => {
      expect(await visit('lacksWebGPU')).toEqual({
        disabled: true,
        reason: 'This browser has no WebGPU.',
        chosen: 'wasm',
        problems: [],
      });
    });

    it('trains in a worker, continues, and continues after a reload from the browser and from a file', async () => {
      const seen = await visit<{
        steps: string[];
        restored: string[];
        workers: number;
        text: string;
        model: string;
        refused: string;
        problems: string[];
      }>('trains');
      expect(seen.problems).toEqual([]);
      expect(seen.steps.map((text) => text.split(',')[0])).toEqual([
        '8 steps done',
        '16 steps done',
        '24 steps done',
        '24 steps done',
      ]);
      // A resumed run goes on exactly where it was: both continue the same sixteen steps.
      expect(seen.steps[3]).toBe(seen.steps[2]);
      const losses = seen.steps.map((text) => Number(/loss (\d+\.\d+)/.exec(text)![1]));
      expect(losses[1]).toBeLessThan(losses[0]!);
      expect(seen.restored).toEqual(Array(2).fill('A run of 16 steps is here; it can be continued.'));
      expect(seen.workers).toBe(2);
      expect(seen.text).toMatch(/^the cat .{30}$/s);
      expect(seen.model).toContain('trained here, 24 steps');
      expect(seen.refused).toContain('its length is not what it says');
    });

    it.each([
      ['light', 1280],
      ['dark', 1280],
      ['light', 360],
    ])('has no violation that axe-core finds, in %s at %i pixels, and fits', async (colorScheme, width) => {
      const seen = await visit<{
        violations: {id: string; impact: string; nodes: string[]}[];
        passes: number;
        overflow: number;
        transition: string;
        problems: string[];
      }>('isAccessible', {colorScheme, width});
      expect(seen.violations).toEqual([]);
      expect(seen.passes).toBeGreaterThan(20);
      expect(seen.overflow).toBeLessThanOrEqual(0);
      expect(seen.transition).toBe('0s'); // reduced motion was asked for
      expect(seen.problems).toEqual([]);
    });
  },
  undefined,
  join(__dirname, 'driver.mjs'),
);
