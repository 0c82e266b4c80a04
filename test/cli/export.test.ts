/** The built command line exports a model in fewer bytes. */
import {cpSync, renameSync, statSync, writeFileSync} from 'node:fs';
import {buildIfStale, cli, type Ended, run} from '../helpers/dist';
import {Workspace} from './workspace';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

describe('export', () => {
  const workspace = new Workspace();
  beforeAll(async () => {
    buildIfStale();
    expect((await workspace.train('run', '--steps', '2')).code).toBe(0);
  });
  afterAll(() => workspace.remove());

  const exported = (out: string, ...flags: string[]): Promise<Ended> =>
    run([cli, 'export', '--model', workspace.path('run'), '--out', workspace.path(out), ...flags]);
  const size = (folder: string) => statSync(workspace.path(folder, 'weights.bin')).size;

  it('writes a smaller model that generate takes, and says how small', async () => {
    const {code, stderr} = await exported('small', '--quantize', 'float16');
    expect({code, stderr}).toEqual({
      code: 0,
      stderr: expect.stringMatching(/small: \d+ bytes of weights, \d\d% of the \d+ of .*run\.\n$/),
    });
    expect(workspace.list('small')).toEqual(['model.json', 'tokenizer.json', 'weights.bin']);
    expect(size('small')).toBeLessThan(size('run') * 0.75);
    const [exact, small] = await Promise.all(
      ['run', 'small'].map((model) =>
        workspace.generate(model, '--prompt', 'the dog', '--max-tokens', '10', '--temperature', '0'),
      ),
    );
    expect(small!.code).toBe(0);
    expect(small!.stdout).toBe(exact!.stdout);
  });

  it('copies exactly without --quantize, and replaces an export with --overwrite only', async () => {
    expect((await exported('copy')).code).toBe(0);
    expect(workspace.bytes('copy', 'weights.bin').equals(workspace.bytes('run', 'weights.bin'))).toBe(true);
    const {code, stderr} = await exported('copy', '--quantize', 'uint8');
    expect(code).toBe(2);
    expect(stderr).toMatch(/export: --out .*copy is not empty \(.*\)\. Give --overwrite, or another folder/);
    expect((await exported('copy', '--quantize', 'uint8', '--overwrite')).code).toBe(0);
    expect(size('copy')).toBeLessThan(size('run') / 2);
  });

  it('takes a model whose weights have the name that tfjs gives them', async () => {
    cpSync(workspace.path('run'), workspace.path('shards'), {recursive: true});
    const [json, shard] = [workspace.path('shards', 'model.json'), 'group1-shard1of1.bin'];
    writeFileSync(json, workspace.bytes('shards', 'model.json').toString().replace('weights.bin', shard));
    renameSync(workspace.path('shards', 'weights.bin'), workspace.path('shards', shard));
    const {code, stderr} = await run([
      cli,
      'export',
      '--model',
      workspace.path('shards'),
      '--out',
      workspace.path('whole'),
    ]);
    expect({code, stderr}).toEqual({
      code: 0,
      stderr: expect.stringMatching(/whole: \d+ bytes of weights\.\n$/),
    });
    expect(workspace.bytes('whole', 'weights.bin').equals(workspace.bytes('run', 'weights.bin'))).toBe(true);
  });

  it('never replaces a run, nor takes what is no model or no form', async () => {
    expect((await workspace.train('other', '--steps', '2')).code).toBe(0);
    for (const [flags, pattern] of [
      [['--out', workspace.path('other'), '--overwrite'], /export: --out .*other holds a run/],
      [['--out', workspace.path('run'), '--overwrite'], /is the folder of --model/],
      [
        ['--out', workspace.path('x'), '--quantize', 'int4'],
        /expected --quantize to be float16 or uint16 or uint8; got 'int4'/,
      ],
      [['--out', workspace.text], /it is a file; expected a folder/],
    ] as const) {
      const {code, stderr} = await run([cli, 'export', '--model', workspace.path('run'), ...flags]);
      expect({failed: code !== 0, stderr}).toEqual({failed: true, stderr: expect.stringMatching(pattern)});
    }
    const {code, stderr} = await run([
      cli,
      'export',
      '--model',
      workspace.path('none'),
      '--out',
      workspace.path('x'),
    ]);
    expect({code, stderr}).toEqual({
      code: 1,
      stderr: expect.stringMatching(/--model .*none: there is no such folder/),
    });
  });
});
