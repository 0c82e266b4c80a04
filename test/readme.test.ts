/** Every snippet of the README does what it shows: the Node ones in a process, the page's in a context with a page's globals. */
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import vm from 'node:vm';
import {buildIfStale, cli, root, run} from './helpers/dist';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

const readme = readFileSync(join(root, 'README.md'), 'utf8');

function blocks(language: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    (match) => match[1]!,
  );
}

beforeAll(buildIfStale);

describe('README', () => {
  it('has only snippets that are tested here', () => {
    const languages = [...readme.matchAll(/^```(\w+)/gm)].map((match) => match[1]);
    expect(languages).toEqual(['js', 'js', 'html', 'js']);
  });

  it('trains and writes in Node as it shows', async () => {
    const {code, stdout, stderr} = await run(['-e', blocks('js')[0]!]);
    expect({code, stderr: code === 0 ? '' : stderr}).toEqual({code: 0, stderr: ''});
    const losses = [...stdout.matchAll(/step \d+: loss ([\d.]+)/g)].map((match) => Number(match[1]));
    expect(losses).toHaveLength(5);
    expect(losses.at(-1)).toBeLessThan(losses[0]! - 0.2);
    const written = stdout.slice(stdout.lastIndexOf('loss')).replace(/^.*\n/, '');
    expect(written.length).toBeGreaterThanOrEqual(100);
  });

  it('trains a layer by tfjs fit as it shows', async () => {
    const {code, stdout} = await run(['-e', blocks('js')[1]!]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/loss \[ [\d.]+, [\d.]+ \]/);
  });

  it('shows how far random features are from softmax, as it says', async () => {
    const {code, stdout} = await run(['-e', blocks('js')[2]!]);
    expect(code).toBe(0);
    const errors = [...stdout.matchAll(/relative error ([\d.]+)/g)].map((match) => Number(match[1]));
    const [smallFew, smallMany, largeFew, largeMany] = errors as [number, number, number, number];
    expect(smallMany).toBeLessThan(smallFew);
    expect(smallMany).toBeLessThan(0.1);
    expect(Math.min(largeFew, largeMany)).toBeGreaterThan(0.3);
  });

  it('streams in a page as it shows, by script tags and without Node', async () => {
    const html = blocks('html')[0]!;
    const tags = [...html.matchAll(/<script src="([^"]*)">/g)].map((match) => match[1]!);
    expect(tags.map((tag) => tag.replace(/^.*\/npm\//, ''))).toEqual([
      '@tensorflow/tfjs@4.22.0',
      'tfjs-linear-attention',
    ]);
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const lines: unknown[][] = [];
    const page = vm.createContext({
      // tfjs says here that this page has no WebGL, and takes its cpu backend.
      console: {...console, log: (...values: unknown[]) => lines.push(values), warn() {}},
      performance,
      setTimeout,
      clearTimeout,
      TextEncoder,
      TextDecoder,
      atob,
      btoa,
      navigator: {userAgent: ''},
    });
    vm.runInContext(
      'globalThis.self = globalThis.window = globalThis; globalThis.document = {createElement: () => ({getContext: () => null, addEventListener() {}})};',
      page,
    );
    for (const file of ['node_modules/@tensorflow/tfjs/dist/tf.min.js', manifest.jsdelivr]) {
      vm.runInContext(readFileSync(join(root, file), 'utf8'), page, {filename: file});
    }
    const script = /<script>([\s\S]*)<\/script>/.exec(html)![1]!;
    await vm.runInContext(script, page);
    lines.splice(0, lines.length, ...lines.filter(([text]) => !/WebGL/.test(String(text))));
    const [heads, dim] = [4, 16];
    expect(lines.at(-1)).toEqual(['the state after 100 tokens:', heads * dim * (dim + 1), 'numbers']);
    expect(lines.map(([text]) => text)).toEqual(['token 0', 'token 50', 'the state after 100 tokens:']);
  });

  it('names only commands and flags that exist', async () => {
    const commands = [...readme.matchAll(/npx tfjs-linear-attention ([a-z-]+)([^\n]*)/g)];
    expect(commands.length).toBeGreaterThan(1);
    for (const [, command, rest] of commands) {
      const {code, stdout} = await run([cli, command!, '--help']);
      expect(code).toBe(0);
      for (const [flag] of rest!.matchAll(/--[a-z-]+/g)) expect(stdout).toContain(`${flag} `);
    }
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
    const {scripts} = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const documents = ['README.md', 'CONTRIBUTING.md']
      .map((name) => readFileSync(join(root, name), 'utf8'))
      .join('\n');
    for (const [, name] of documents.matchAll(/npm run ([a-z:]+)/g)) expect(scripts).toHaveProperty([name!]);
  });
});
