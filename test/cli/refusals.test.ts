/** Wrong use of the built command line: the exit code, what it says, and that nothing was made or changed. */
import {cpSync, existsSync, mkdirSync} from 'node:fs';
import {buildIfStale, cli, run} from '../helpers/dist';
import {TEXT, Workspace} from './workspace';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

describe('the command line refuses', () => {
  const workspace = new Workspace();
  beforeAll(async () => {
    buildIfStale();
    expect((await workspace.train('run', '--steps', '2')).code).toBe(0);
  });
  afterAll(() => workspace.remove());

  const data = (path: string, ...more: string[]) =>
    run([cli, 'train', '--data', path, '--out', workspace.path('new'), ...more]);

  it.each<[string, () => string, RegExp]>([
    ['missing', () => workspace.path('nowhere.txt'), /no such file or folder/],
    ['a folder', () => workspace.folder, /it is a folder; expected a text file/],
    ['empty', () => workspace.write('empty.txt', ''), /it is empty/],
    ['binary', () => workspace.write('binary.bin', Uint8Array.of(1, 2, 0, 3)), /it is not text: byte 2 is 0/],
    [
      'not UTF-8',
      () => workspace.write('latin1.txt', Uint8Array.of(0x61, 0xe9, 0x62)),
      /it is not valid UTF-8/,
    ],
    [
      'too small',
      () => workspace.write('small.txt', 'hello'),
      /it has 5 characters; expected at least \d+ for --length 128/,
    ],
  ])('data that is %s, and makes no folder', async (_, make, text) => {
    const {code, stdout, stderr} = await data(make());
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(text);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(workspace.exists('new')).toBe(false);
  });

  it.each<[string, string[], RegExp]>([
    ['an unknown flag', ['--stpes', '3'], /unknown flag --stpes; did you mean --steps\?/],
    [
      'a value out of range',
      ['--batch', '0'],
      /expected --batch to be a whole number of at least 1; got '0'/,
    ],
    [
      'heads that do not divide the model',
      ['--d-model', '10', '--heads', '4'],
      /expected --d-model to be a multiple of --heads \(4\); got 10/,
    ],
    ['an unknown feature map', ['--feature-map', 'elephant', '--length', '16'], /featureMap.*elephant/],
    [
      'threads on another backend',
      ['--threads', '2', '--backend', 'cpu'],
      /--threads needs --backend wasm; got cpu/,
    ],
    [
      'threads that do not divide the batches',
      ['--threads', '2', '--accumulate', '3'],
      /expected --accumulate to be a multiple of --threads \(2\); got 3/,
    ],
    ['contradicting flags', ['--resume', '--overwrite'], /give --resume or --overwrite, not both/],
  ])('%s with exit code 2, and makes no folder', async (_, flags, text) => {
    const {code, stderr} = await data(workspace.text, ...flags);
    expect(code).toBe(2);
    expect(stderr).toMatch(text);
    expect(workspace.exists('new')).toBe(false);
  });

  it('a folder that holds a run already, which stays as it is', async () => {
    const before = workspace.bytes('run', 'weights.bin');
    const {code, stderr} = await workspace.train('run', '--steps', '1');
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /holds a run already .*Give --resume to continue it, --overwrite to replace it, or another folder/,
    );
    expect(workspace.bytes('run', 'weights.bin').equals(before)).toBe(true);
  });

  it('a file in the place of the folder, and a folder that cannot be made', async () => {
    const file = await workspace.train('text.txt', '--steps', '1');
    expect(file).toMatchObject({code: 1, stderr: expect.stringContaining('it is a file; expected a folder')});
    const below = await workspace.train('text.txt/below', '--steps', '1');
    expect(below).toMatchObject({code: 1, stderr: expect.stringMatching(/cannot write in it: .*\(E\w+\)/)});
    expect(workspace.bytes('text.txt').toString()).toBe(TEXT);
    if (existsSync('/proc/self')) {
      const proc = await run([cli, 'train', '--data', workspace.text, '--out', '/proc/a/b']);
      expect(proc.stderr).toContain("--out /proc/a/b: cannot write in it: no folder can be made in '/proc'.");
      expect(proc.code).toBe(1);
    }
  });

  it.each<[string, (folder: string) => void, string[], number, RegExp]>([
    ['other settings', () => {}, ['--lr', '0.5'], 2, /leave out --lr 0\.5 \(the run has 0\.003\)/],
    ['another text', () => {}, ['--data', 'OTHER'], 1, /another training data/],
    ['a text with new characters', () => {}, ['--data', 'NEW'], 1, /Was the run started with another text\?/],
    ['no run', (folder) => workspace.write(`${folder}/run.json`, ''), [], 1, /cannot use .*run\.json/],
    [
      'a run.json of something else',
      (folder) => workspace.write(`${folder}/run.json`, '{"version": 1, "settings": {"steps": "9"}}'),
      [],
      1,
      /its setting '\S+' is .*, expected a/,
    ],
    [
      'a damaged checkpoint',
      (folder) =>
        workspace.write(
          `${folder}/checkpoint.bin`,
          workspace.bytes('run', 'checkpoint.bin').subarray(0, 1000),
        ),
      [],
      1,
      /checkpoint\.bin/,
    ],
    [
      'a damaged tokenizer',
      (folder) =>
        workspace.write(`${folder}/tokenizer.json`, '{"type": "character", "characters": ["b", "a"]}'),
      [],
      1,
      /tokenizer\.json.*increasing order/,
    ],
  ])('to resume with %s, and leaves the model alone', async (name, damage, flags, code, text) => {
    const folder = `resume ${name}`;
    cpSync(workspace.path('run'), workspace.path(folder), {recursive: true});
    damage(folder);
    workspace.write('other.txt', TEXT.toLowerCase().replaceAll('fox', 'dog'));
    workspace.write('new.txt', `${TEXT}ZEBRA`);
    const file = flags.includes('OTHER')
      ? workspace.path('other.txt')
      : flags.includes('NEW')
        ? workspace.path('new.txt')
        : workspace.text;
    const more = flags[0] === '--data' ? [] : flags;
    const ended = await run([
      cli,
      'train',
      '--data',
      file,
      '--out',
      workspace.path(folder),
      '--backend',
      'cpu',
      '--resume',
      '--steps',
      '4',
      ...more,
    ]);
    expect(ended.stderr).toMatch(text);
    expect(ended.code).toBe(code);
    expect(workspace.bytes(folder, 'weights.bin').equals(workspace.bytes('run', 'weights.bin'))).toBe(true);
  });

  it('to resume where nothing was started', async () => {
    const {code, stderr} = await workspace.resume('nothing');
    expect(code).toBe(1);
    expect(stderr).toMatch(/--resume: .*nothing holds no run to continue/);
    expect(workspace.exists('nothing')).toBe(false);
  });

  it.each<[string, () => string, string, number, RegExp]>([
    ['a missing folder', () => 'nowhere', 'the', 1, /there is no such folder/],
    ['a file', () => 'text.txt', 'the', 1, /it is a file; expected the folder that train wrote/],
    [
      'an empty folder',
      () => {
        mkdirSync(workspace.path('bare'), {recursive: true});
        return 'bare';
      },
      'the',
      1,
      /it holds no model \(model\.json is missing\)/,
    ],
    [
      'characters that the model never saw',
      () => 'run',
      'the ÿ',
      1,
      /--prompt: "ÿ" did not occur in the text/,
    ],
    ['an empty prompt', () => 'run', '', 2, /--prompt is empty/],
    [
      'damaged weights',
      () => {
        cpSync(workspace.path('run'), workspace.path('damaged'), {recursive: true});
        const bytes = workspace.bytes('run', 'weights.bin');
        bytes[100]! ^= 1;
        workspace.write('damaged/weights.bin', bytes);
        return 'damaged';
      },
      'the',
      1,
      /weights\.bin .*damaged/,
    ],
  ])('to generate from %s', async (_, make, prompt, code, text) => {
    const ended = await workspace.generate(make(), '--prompt', prompt);
    expect(ended.stderr).toMatch(text);
    expect(ended.code).toBe(code);
    expect(ended.stdout).toBe('');
  });

  it('unknown commands, with a hint', async () => {
    expect(await run([cli, 'genrate'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean generate?'),
    });
    expect(await run([cli])).toMatchObject({code: 2, stdout: '', stderr: expect.stringContaining('Usage:')});
  });
});
