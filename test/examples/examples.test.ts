/** The programs in examples/node, each run as a user runs it, at its small size: what it prints is what a reader relies on. */
import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {buildIfStale, root, run} from '../helpers/dist';

jest.setTimeout(300000);

const folder = join(root, 'examples', 'node');

/** Output of an example that ended well and said nothing on stderr. */
async function output(name: string, ...args: string[]): Promise<string> {
  const {code, stdout, stderr} = await run([join('examples', 'node', name), ...args]);
  expect({code, stderr}).toEqual({code: 0, stderr: ''});
  return stdout;
}

/** The numbers in the groups of a pattern that must match. */
function numbers(text: string, pattern: RegExp): number[] {
  const match = pattern.exec(text);
  expect([pattern, match === null ? text : 'found']).toEqual([pattern, 'found']);
  return match!.slice(1).map(Number);
}

const all = (text: string, pattern: RegExp): number[] =>
  [...text.matchAll(pattern)].map((match) => Number(match[1]));

beforeAll(buildIfStale);

describe('examples', () => {
  it('classify digits far better than chance with a bidirectional encoder', async () => {
    const text = await output('classify_digits.mjs', '--quick');
    const losses = all(text, /loss ([\d.]+)/g);
    expect(losses.at(-1)).toBeLessThan(losses[0]! / 2);
    const [right, of] = numbers(text, /(\d+) of (\d+) unseen images right/);
    expect(of).toBe(200);
    expect(right / of).toBeGreaterThan(0.6);
  });

  it('forecast births better than repeating the last week, from a state that does not grow', async () => {
    const text = await output('forecast_births.mjs', '--quick');
    const [model, lastWeek, grown] = numbers(
      text,
      /: (\d+) births a day; repeating the last known week: (\d+)\. The state grew by (\d+) bytes/,
    );
    expect(model).toBeLessThan(lastWeek);
    expect(grown).toBe(0);
  });

  it('stop fit early, with a sample after each epoch and the best weights back', async () => {
    const text = await output('fit_callbacks.mjs', '--quick');
    const validation = all(text, /^epoch .* validation ([\d.]+)/gm);
    const samples = [...text.matchAll(/^epoch .*"The whale (.*)"$/gm)];
    const [epochs, most, best, loss, last] = numbers(
      text,
      /Stopped after (\d+) of (\d+) epochs\. The weights are those of epoch (\d+) again: validation loss ([\d.]+); the last epoch's was (\d+\.\d+)/,
    );
    expect(epochs).toBeLessThan(most);
    expect([validation.length, samples.length]).toEqual([epochs, epochs]);
    expect(validation[best - 1]).toBe(Math.min(...validation));
    expect(loss).toBeCloseTo(validation[best - 1]!, 2);
    expect(loss).toBeLessThan(last);
    expect(loss).toBeLessThan(validation[0]! - 0.2);
  });

  it('resume a stopped run bit for bit', async () => {
    const text = await output('resume_training.mjs', '--quick');
    const [losses, steps, same, weights] = numbers(
      text,
      /(\d+) of (\d+) losses and (\d+) of (\d+) weights are the same, bit for bit/,
    );
    expect(losses).toBe(steps);
    expect(same).toBe(weights);
    expect(numbers(text, /stopped: +steps 1 to (\d+) \(aborted\)/)[0]).toBeLessThan(steps);
  });

  it('find likelier words by a beam of forks than greedily, with the right probabilities and nothing left', async () => {
    const text = await output('beam_search.mjs', '--quick');
    const beams = [...text.matchAll(/^ {2}beam +(.*)$/gm)].map(([, line]) => line!.split(', '));
    expect(beams).toHaveLength(5);
    for (const words of beams) {
      expect(new Set(words).size).toBe(5);
      const shares = words.map((word) => Number.parseFloat(word.split(' ')[1]!));
      expect(shares).toEqual([...shares].sort((a, b) => b - a));
    }
    const [gained, error, left] = numbers(
      text,
      /beam's first is e\^([-\d.]+) times as likely .* by at most ([\d.e+-]+); (-?\d+) tensors left over/,
    );
    expect(gained).toBeGreaterThan(0);
    expect(error).toBeLessThan(1e-4);
    expect(left).toBe(0);
  });

  it('pad on every side without changing anything', async () => {
    const text = await output('masks.mjs');
    const each = all(text, /^ {2}.* ([\d.]+e[+-]\d+)$/gm);
    const [count, most, left] = numbers(
      text,
      /in (\d+) comparisons: ([\d.e+-]+), rounding; (\d+) tensors left over/,
    );
    expect([each.length, count]).toEqual([7, 7]);
    expect(Math.max(...each)).toBe(most);
    expect(most).toBeLessThan(1e-5);
    expect(left).toBe(0);
  });

  it('train, save and load a feature map of their own', async () => {
    const text = await output('custom_feature_map.mjs', '--quick');
    expect(numbers(text, /sharpened +([\d.]+)$/m)[0]).toBeLessThan(5); // 6 bits by guessing
    const [learned] = /(?<=at the start: ).*/.exec(text)!;
    expect(learned.split(/[,|] /).some((a) => Math.abs(Number(a) - 1) > 0.02)).toBe(true);
    expect(text).toContain(
      `Saved and loaded: sharpness ${learned}; ${/sharpened +([\d.]+)$/m.exec(text)![1]} bits`,
    );
  });

  it('are listed in their README with their commands, and every one is tested here', () => {
    const readme = readFileSync(join(folder, 'README.md'), 'utf8');
    const tests = readFileSync(__filename, 'utf8');
    // These two are parts of main_job.mjs, which has a test of its own.
    const parts = ['decode_table.mjs', 'moby_dick.mjs', 'main_job.mjs'];
    const programs = readdirSync(folder).filter((name) => name.endsWith('.mjs') && !parts.includes(name));
    expect(programs.length).toBeGreaterThanOrEqual(7);
    for (const name of programs) {
      expect(readme).toContain(`node examples/node/${name}`);
      expect(tests).toContain(`output('${name}'`);
    }
  });
});
