import {buildIfStale, cli, root, run} from '../helpers/dist';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

describe('help', () => {
  beforeAll(buildIfStale);
  const {version} = require(`${root}/package.json`) as {version: string};

  it('lists the commands, the exit codes and the version', async () => {
    const {code, stdout} = await run([cli, '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain(version);
    expect(stdout).toMatch(/train .*\n {2}generate /);
    expect(stdout).toMatch(/Exit codes: 0 .*1 .*2 .*130/);
    expect((await run([cli, '--version'])).stdout.trim()).toBe(version);
  });

  it.each(['train', 'generate', 'export', 'bench'])(
    'of %s has its flags and examples, whatever else was given',
    async (command) => {
      const texts = await Promise.all(
        [
          ['help', command],
          [command, '--help'],
          [command, '--nonsense', '-h'],
        ].map((args) => run([cli, ...args])),
      );
      for (const {code, stdout} of texts) {
        expect(code).toBe(0);
        expect(stdout).toMatch(/Flags:\n {2}--/);
        expect(stdout).toMatch(new RegExp(`Examples:\\n {2}tfjs-linear-attention ${command} --`));
      }
    },
  );
});
