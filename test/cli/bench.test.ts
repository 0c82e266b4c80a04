/** The built command line's `bench`, and the gate that stands before every timing. Nothing is timed here. */
import {cpSync, mkdirSync, mkdtempSync, rmSync} from 'node:fs';
import {join} from 'node:path';
import {buildIfStale, cli, root, run} from '../helpers/dist';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

describe('bench', () => {
  beforeAll(buildIfStale);

  it('refuses an unknown case, and lists those there are', async () => {
    const {code, stderr} = await run([cli, 'bench', '--only', 'fowrard']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/unknown case 'fowrard'; the cases are forward, backward, onnxruntime/);
  });

  it('says where the benchmarks are when the package is installed without them', async () => {
    const folder = mkdtempSync(join(root, 'node_modules', '.tfla-bench-'));
    try {
      mkdirSync(join(folder, 'dist'));
      cpSync(cli, join(folder, 'dist', 'cli.cjs'));
      const {code, stderr} = await run([join(folder, 'dist', 'cli.cjs'), 'bench', '--quick']);
      expect(code).toBe(1);
      expect(stderr).toMatch(/part of the repository and not of the installed package.*npm run bench/);
    } finally {
      rmSync(folder, {recursive: true});
    }
  });

  it.each([
    ['differ', '[1, 2.001]', /the results disagree/],
    ['are NaN', '[1, NaN]', /the results disagree/],
    ['are of another size', '[1]', /expected 2 values; got 1/],
  ])('times nothing when results %s', async (_, other, message) => {
    const code = `
      import {compare} from './benchmarks/lib/timing.mjs';
      let calls = 0;
      const other = {name: 'peer', run: () => (calls++, Float32Array.from(${other}))};
      await compare('case', [{name: 'ours', run: () => Float32Array.of(1, 2)}, other]).catch(({message}) => {
        console.log(calls, message);
      });`;
    const {stdout} = await run(['--input-type=module', '-e', code]);
    expect(stdout).toMatch(/^1 case, peer: /);
    expect(stdout).toMatch(message);
  });
});
