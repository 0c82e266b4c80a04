/** The built command line, as users run it: what training leaves, and that an interruption loses nothing. */
import {rmSync} from 'node:fs';
import {buildIfStale, run, start} from '../helpers/dist';
import {Workspace, withFileLimit} from './workspace';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

const FILES = ['checkpoint.bin', 'log.jsonl', 'model.json', 'run.json', 'tokenizer.json', 'weights.bin'];

describe('train', () => {
  const workspace = new Workspace();
  beforeAll(buildIfStale);
  afterAll(() => workspace.remove());

  it('leaves a model, a tokenizer, a checkpoint and a log, and the loss falls', async () => {
    const {code, stdout, stderr} = await workspace.train('plain', '--steps', '40', '--lr', '0.01');
    expect({code, stderr: code === 0 ? '' : stderr}).toEqual({code: 0, stderr: ''});
    expect(workspace.list('plain')).toEqual(FILES);
    const log = workspace.lines('plain', 'log.jsonl');
    expect(log.map(({step}) => step)).toEqual(Array.from({length: 40}, (_, i) => i + 1));
    expect(log.at(-1)!.loss).toBeLessThan(log[0]!.loss - 0.3);
    expect(stdout).toMatch(
      /^40 steps, loss [\d.]+, validation [\d.]+ bits per character, \d+ tokens\/s; saved in /,
    );
    expect(stderr).toMatch(/step 40\/40 {2}loss [\d.]+ {2}[\d.]+ bits\/char .* left/);
  });

  it('gives the same weights for the same seed, and others for another', async () => {
    for (const [out, seed] of [
      ['seed1a', '1'],
      ['seed1b', '1'],
      ['seed2', '2'],
    ]) {
      expect((await workspace.train(out!, '--steps', '3', '--seed', seed!)).code).toBe(0);
    }
    const [a, b, c] = ['seed1a', 'seed1b', 'seed2'].map((out) => workspace.bytes(out, 'weights.bin'));
    expect(a!.equals(b!)).toBe(true);
    expect(a!.equals(c!)).toBe(false);
  });

  it('stops at Ctrl-C, saves, and resumes to the very weights of a run that was never stopped', async () => {
    const steps = ['--steps', '60', '--every', '1', '--validation', '0', '--dropout', '0.2'];
    const straight = await workspace.train('straight', ...steps);
    expect(straight.code).toBe(0);

    const running = workspace.startTraining('stopped', ...steps);
    await running.said(/step +2\/60/);
    running.kill('SIGINT');
    const {code, stdout, stderr} = await running.ended;
    expect(code).toBe(130);
    expect(stderr).toContain('Stopping after this step and saving.');
    expect(stdout).toMatch(/Interrupted; the same command with --resume continues from step \d+\./);
    expect(workspace.list('stopped')).toEqual(FILES);
    const done = workspace.lines('stopped', 'log.jsonl').length;
    expect(done).toBeGreaterThanOrEqual(2);
    expect(done).toBeLessThan(60);

    expect((await workspace.resume('stopped')).code).toBe(0);
    const log = workspace.lines('stopped', 'log.jsonl');
    expect(log.map(({step}) => step)).toEqual(Array.from({length: 60}, (_, i) => i + 1));
    expect(log.map(({loss}) => loss)).toEqual(workspace.lines('straight', 'log.jsonl').map(({loss}) => loss));
    expect(workspace.bytes('stopped', 'weights.bin').equals(workspace.bytes('straight', 'weights.bin'))).toBe(
      true,
    );
  });

  it('goes on and saves when nobody reads its messages any more', async () => {
    const args = workspace.trainArgs('unread', '--steps', '12', '--every', '4');
    // Exit status of the program itself, through a reader that leaves after the first line.
    const script = 'set -o pipefail; "$@" 2>&1 >"$OUT" | head -n 1 >/dev/null';
    const {code} = await start('env', [
      `OUT=${workspace.path('unread.txt')}`,
      ...['bash', '-c', script, 'bash', process.execPath, ...args],
    ]).ended;
    expect(code).toBe(0);
    expect(workspace.list('unread')).toEqual(FILES);
  });

  it('says how to go on when a run ended before its first checkpoint', async () => {
    expect((await workspace.train('early', '--steps', '2')).code).toBe(0);
    for (const name of ['checkpoint.bin', 'model.json', 'weights.bin']) rmSync(workspace.path('early', name));
    const {code, stderr} = await workspace.resume('early');
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /holds no checkpoint \(checkpoint\.bin is missing\).*--overwrite in place of --resume/,
    );
  });

  it('starts from the weights of a trained model, with another feature map or kind of attention', async () => {
    expect((await workspace.train('first', '--steps', '40', '--lr', '0.01', '--every', '40')).code).toBe(0);
    const from = ['--from', workspace.path('first'), '--lr', '0.0001'];
    expect((await workspace.train('second', ...from, '--steps', '3', '--feature-map', 'elu')).code).toBe(0);
    const [first, second] = ['first', 'second'].map((name) => workspace.lines(name, 'log.jsonl'));
    // Nearly where the first ended, and far from where it began.
    expect(second![0]!.loss).toBeLessThan((first![0]!.loss + first!.at(-1)!.loss) / 2);
    expect(second![0]!.loss).not.toBe(first![0]!.loss);

    const other = await workspace.train('third', ...from, '--steps', '1', '--attention', 'softmax');
    expect(other.code).toBe(0);

    const args = workspace.trainArgs('fourth', ...from);
    args[args.indexOf('--d-model') + 1] = '16';
    const {code, stderr} = await run(args);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /--from .*: its model is of another size: expected the weight .* \[\d+,16\]; got .* \[\d+,8\]/,
    );
    expect(workspace.exists('fourth')).toBe(false);
  });

  it('shares a step between threads, with the weights that one thread gives', async () => {
    const flags = ['--backend', 'wasm', '--steps', '4', '--accumulate', '2', '--dropout', '0.1'];
    const [one, two] = ['one', 'two'];
    expect((await workspace.train(one, ...flags)).code).toBe(0);
    expect((await workspace.train(two, ...flags, '--threads', '2')).code).toBe(0);
    const [a, b] = [one, two].map((name) => workspace.lines(name, 'log.jsonl').map(({loss}) => loss));
    expect(a).toHaveLength(4);
    for (const [i, loss] of a!.entries()) expect(b![i]).toBeCloseTo(loss, 5);
  });

  it('loses at most the steps since the last checkpoint when it is killed, and says so to generate', async () => {
    const running = workspace.startTraining('killed', '--steps', '5000', '--every', '1', '--validation', '0');
    await running.said(/step +3\/5000/);
    running.kill('SIGKILL');
    expect((await running.ended).signal).toBe('SIGKILL');
    const generated = await workspace.generate('killed', '--prompt', 'the');
    expect(generated.code).toBe(1);
    expect(generated.stderr).toMatch(
      /training did not come to an end; train --out .* --resume finishes it\./,
    );
    const before = workspace.lines('killed', 'log.jsonl').length;
    const resumed = await workspace.resume('killed', '--steps', String(before + 3));
    expect(resumed.code).toBe(0);
    expect(resumed.stdout).toMatch(new RegExp(`^${before + 3} steps`));
    // A step's line is written after its checkpoint: the kill may have come between the two.
    const steps = workspace.lines('killed', 'log.jsonl').map(({step}) => step);
    expect(steps).toEqual([...new Set(steps)].sort((x, y) => x - y));
    expect(steps.length).toBeGreaterThanOrEqual(before + 2);
    expect(steps.at(-1)).toBe(before + 3);
  });

  it('stops when its time is up, which is no failure', async () => {
    const {code, stdout} = await workspace.train('timed', '--steps', '1000000', '--minutes', '0.02');
    expect(code).toBe(0);
    expect(stdout).toMatch(/The time is up; the same command with --resume continues from step \d+\./);
  });

  it('plans its steps for the time when none are given', async () => {
    const {code, stdout} = await workspace.train('planned', '--minutes', '0.02');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+ steps, /);
    expect(JSON.parse(workspace.bytes('planned', 'run.json').toString()).settings.steps).toBeGreaterThan(0);
  });

  it('keeps the last checkpoint and model when the disk is full, says so, and resumes when there is room', async () => {
    expect((await workspace.train('full', '--steps', '4')).code).toBe(0);
    const before = FILES.map((name) => workspace.bytes('full', name));
    const args = workspace.resumeArgs('full', '--steps', '6');
    const {code, stderr} = await withFileLimit(2, args);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /could not write '.*checkpoint\.bin': EFBIG.*What was there before is unchanged\./,
    );
    expect(workspace.list('full')).toEqual(FILES);
    for (const name of ['checkpoint.bin', 'model.json', 'weights.bin', 'tokenizer.json']) {
      expect(workspace.bytes('full', name).equals(before[FILES.indexOf(name)]!)).toBe(true);
    }
    expect((await workspace.resume('full', '--steps', '6')).stdout).toMatch(/^6 steps/);
  });

  it('says at the start that a disk is full, before any work', async () => {
    const {code, stderr} = await withFileLimit(0, workspace.trainArgs('nospace', '--steps', '2'));
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /--out .*nospace: cannot write in it: the file would exceed the size limit \(EFBIG\)\./,
    );
  });
});
