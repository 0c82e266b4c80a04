/** Which backend the command line takes, and what it says about it. */
import {buildIfStale, cli, run} from '../helpers/dist';
import {whyNoTfjsNode} from '../helpers/tfjs_node';
import {Workspace} from './workspace';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

describe('--backend', () => {
  const workspace = new Workspace();
  const missing = whyNoTfjsNode();
  const onNode = missing === null ? it : it.skip;
  if (missing !== null) console.warn(`SKIPPED: the command line on tfjs-node. ${missing}`);

  beforeAll(() => buildIfStale());
  afterAll(() => workspace.remove());

  onNode('node trains on tfjs-node with the native operations, and says so', async () => {
    const {code, stderr} = await workspace.train('node', '--steps', '3', '--backend', 'node');
    expect(code).toBe(0);
    expect(stderr).toContain('; backend node with the native attention operations.');
    expect(stderr).toContain('step 3/3');
  });

  onNode('node without the native operations says why', async () => {
    const args = workspace.trainArgs('composed', '--steps', '2', '--backend', 'node');
    const {code, stderr} = await run(args, {TFJS_LINEAR_ATTENTION_NATIVE: 'off'});
    expect(code).toBe(0);
    expect(stderr).toContain('backend node without the native attention operations: TFJS_LINEAR_ATTENTION');
  });

  onNode('nobody asked for one: training takes node, because it is the fastest', async () => {
    const args = workspace
      .trainArgs('default', '--steps', '2')
      .filter((x, i, all) => x !== '--backend' && all[i - 1] !== '--backend');
    const {code, stderr} = await run(args);
    expect(code).toBe(0);
    expect(stderr).toContain(
      '; backend node with the native attention operations (the fastest here; --backend chooses another).',
    );
  });

  it('nobody asked for one: writing takes wasm', async () => {
    expect((await workspace.train('written', '--steps', '2')).code).toBe(0);
    const args = [
      cli,
      'generate',
      '--model',
      workspace.path('written'),
      '--prompt',
      'the',
      '--max-tokens',
      '3',
    ];
    const {code, stderr} = await run(args);
    expect(code).toBe(0);
    expect(stderr).toContain('backend wasm (the fastest here; --backend chooses another).');
  });

  it('several threads are of wasm, whatever else is there', async () => {
    const args = workspace
      .trainArgs('threads', '--steps', '2', '--threads', '2')
      .filter((x, i, all) => x !== '--backend' && all[i - 1] !== '--backend');
    const {code, stderr} = await run(args);
    expect(code).toBe(0);
    expect(stderr).toContain('; backend wasm.');
  });
});
