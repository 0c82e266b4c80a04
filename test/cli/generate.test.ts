/** The built command line writes text: what goes where, and what ends it. */
import {buildIfStale, start} from '../helpers/dist';
import {Workspace} from './workspace';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

describe('generate', () => {
  const workspace = new Workspace();
  beforeAll(async () => {
    buildIfStale();
    expect((await workspace.train('run', '--steps', '2')).code).toBe(0);
    expect((await workspace.train('softmax', '--steps', '2', '--attention', 'softmax')).code).toBe(0);
  });
  afterAll(() => workspace.remove());

  it('writes the prompt and exactly the characters asked for, the same for the same seed', async () => {
    const flags = ['--prompt', 'the dog', '--max-tokens', '30', '--top-k', '5', '--top-p', '0.9'];
    const [a, b, c] = await Promise.all(
      ['1', '1', '2'].map((seed) => workspace.generate('run', ...flags, '--seed', seed)),
    );
    expect(a!.code).toBe(0);
    expect(a!.stdout).toMatch(/^the dog/);
    expect(a!.stdout).toHaveLength('the dog'.length + 30 + 1);
    expect(b!.stdout).toBe(a!.stdout);
    expect(c!.stdout).not.toBe(a!.stdout);
    expect(a!.stderr).toMatch(
      /^30 tokens; the first after \d+ ms, then \d+ tokens\/s; a state of 160 bytes, whatever the length\.$/m,
    );
  });

  it('says when it wrote further than the windows of the training reached', async () => {
    const line =
      'The model was trained on windows of 16 characters: text further than that from its start tends to be worse. ' +
      'A larger --length in training reaches further.';
    const said = async (tokens: number) =>
      (await workspace.generate('run', '--prompt', 'the dog', '--max-tokens', `${tokens}`)).stderr.split(
        '\n',
      );
    expect(await said(10)).toContain(line);
    expect(await said(9)).not.toContain(line);
  });

  it("says how a softmax model's cache grows", async () => {
    const {stderr} = await workspace.generate('softmax', '--prompt', 'the', '--max-tokens', '7');
    expect(stderr).toMatch(/a cache of 576 bytes, 64 more with every token\./);
  });

  it('ends quietly when its reader has had enough', async () => {
    const command = `"$0" "$@" | head -c 20`;
    const args = workspace.generateArgs('run', '--prompt', 'the', '--max-tokens', '2000');
    const {code, stdout, stderr} = await start('bash', [
      '-o',
      'pipefail',
      '-c',
      command,
      process.execPath,
      ...args,
    ]).ended;
    expect({code, length: stdout.length, stderr}).toEqual({code: 0, length: 20, stderr: ''});
  });

  it('says that its output cannot be written', async () => {
    const args = workspace.generateArgs('run', '--prompt', 'the', '--max-tokens', '20');
    const {code, stderr} = await start('bash', ['-c', '"$0" "$@" > /dev/full', process.execPath, ...args])
      .ended;
    expect(code).toBe(1);
    expect(stderr).toContain('cannot write the output: no space left on the disk (ENOSPC)');
  });

  it('stops at Ctrl-C with what it has written', async () => {
    const running = start(
      process.execPath,
      workspace.generateArgs('run', '--prompt', 'the', '--max-tokens', '1000000'),
    );
    await running.wrote(/^the.{5}/s);
    running.kill('SIGINT');
    const {code, stdout, stderr} = await running.ended;
    expect(code).toBe(130);
    expect(stdout).toMatch(/^the.*\n$/s);
    expect(stderr).toMatch(/\d+ tokens;/);
  });
});
