/** The README's programs do what it says, and its tables name what exists. Its pages and commands: docs/snippets.test.ts. */
import {spawnSync} from 'node:child_process';
import {copyFileSync, rmSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {blocksOf, GUIDES, makeFolder, read} from './docs/documents';
import {buildIfStale, root} from './helpers/dist';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

const readme = read('README.md');
let folder: string;

beforeAll(() => {
  buildIfStale();
  folder = makeFolder();
  // As the README tells newcomers to.
  copyFileSync(join(root, 'README.md'), join(folder, 'book.txt'));
});

afterAll(() => rmSync(folder, {recursive: true, force: true}));

/** Runs the README's program of that number as a file of its own, where the package is installed. */
function runProgram(number: number): string {
  const file = join(folder, `start_${number}.js`);
  writeFileSync(file, blocksOf('README.md', 'js')[number]!.code);
  const {status, stdout, stderr} = spawnSync(process.execPath, [file], {cwd: folder, encoding: 'utf8'});
  expect({status, stderr: status === 0 ? '' : stderr}).toEqual({status: 0, stderr: ''});
  return stdout;
}

describe('README', () => {
  it('has no other programs than those that are run here', () => {
    expect(blocksOf('README.md', 'js')).toHaveLength(3);
  });

  it('trains and writes in Node as it shows', () => {
    const stdout = runProgram(0);
    const losses = [...stdout.matchAll(/step \d+: loss ([\d.]+)/g)].map((match) => Number(match[1]));
    expect(losses).toHaveLength(5);
    expect(losses.at(-1)).toBeLessThan(losses[0]! - 0.2);
    const written = stdout.slice(stdout.lastIndexOf('loss')).replace(/^.*\n/, '');
    expect(written.length).toBeGreaterThanOrEqual(100);
  });

  it('trains a layer by tfjs fit as it shows', () => {
    expect(runProgram(1)).toMatch(/loss \[ [\d.]+, [\d.]+ \]/);
  });

  it('shows how far random features are from softmax, as it says', () => {
    const errors = [...runProgram(2).matchAll(/relative error ([\d.]+)/g)].map((match) => Number(match[1]));
    const [smallFew, smallMany, largeFew, largeMany] = errors as [number, number, number, number];
    expect(smallMany).toBeLessThan(smallFew);
    expect(smallMany).toBeLessThan(0.1);
    expect(Math.min(largeFew, largeMany)).toBeGreaterThan(0.3);
  });

  it('lists only what the package exports, and every namespace of it', () => {
    const api = require(join(root, 'dist', 'index.cjs')) as Record<string, Record<string, unknown>>;
    const table = readme.slice(readme.indexOf('## What there is'), readme.indexOf('## Redefine softmax'));
    const rows = table.split('\n').filter((line) => line.startsWith('| `'));
    const names = rows.flatMap((row) =>
      [...row.split('|')[1]!.matchAll(/`([A-Za-z0-9.]+)/g)].map((match) => match[1]!),
    );
    expect(names.length).toBeGreaterThan(25);
    let namespace = '';
    for (const name of names) {
      const path = name.startsWith('.') ? `${namespace}${name}` : name;
      const [first, second] = path.split('.') as [string, string | undefined];
      if (second !== undefined) namespace = first;
      expect([path, typeof (second === undefined ? api[first] : api[first]?.[second])]).toEqual([
        path,
        'function',
      ]);
    }
    for (const name of Object.keys(api)) {
      if (typeof api[name] === 'object') expect(table).toContain(`${name}.`);
    }
  });

  it('names only npm scripts that exist', () => {
    const {scripts} = JSON.parse(read('package.json'));
    const documents = ['README.md', 'CONTRIBUTING.md', ...GUIDES].map(read).join('\n');
    for (const [, name] of documents.matchAll(/npm run ([a-z:]+)/g)) expect(scripts).toHaveProperty([name!]);
  });
});
