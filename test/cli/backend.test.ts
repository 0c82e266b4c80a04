/** Which backend the command line takes, and what it says about it. */
import {cpSync, mkdirSync, symlinkSync, writeFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {buildIfStale, cli, root, run} from '../helpers/dist';
import {whyNoTfjsNode} from '../helpers/tfjs_node';
import {Workspace} from './workspace';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

describe('--backend', () => {
  const workspace = new Workspace();
  const missing = whyNoTfjsNode();
  const onNode = missing === null ? it : it.skip;
  if (missing !== null) console.warn(`SKIPPED: the command line on tfjs-node. ${missing}`);

  /** The arguments of two steps of training that leave the backend to the program. */
  const withoutBackend = (out: string, ...more: string[]) =>
    workspace
      .trainArgs(out, '--steps', '2', ...more)
      .filter((x, i, all) => x !== '--backend' && all[i - 1] !== '--backend');

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

  onNode('nobody asked for one: training a model of d = 128 takes node, the fastest for it', async () => {
    const {code, stderr} = await run(withoutBackend('default', '--d-model', '128'));
    expect(code).toBe(0);
    expect(stderr).toContain(
      '; backend node with the native attention operations (usually the fastest for models from d = 128 on; --backend chooses another).',
    );
  });

  it('nobody asked for one: training a small model takes wasm, the fastest for it', async () => {
    const {code, stderr} = await run(withoutBackend('small'));
    expect(code).toBe(0);
    expect(stderr).toContain(
      '; backend wasm (usually the fastest for models below d = 128; --backend chooses another).',
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
    expect(stderr).toContain('backend wasm (usually the fastest token by token; --backend chooses another).');
  });

  it('several threads are of wasm, whatever else is there', async () => {
    const {code, stderr} = await run(withoutBackend('threads', '--d-model', '128', '--threads', '2'));
    expect(code).toBe(0);
    expect(stderr).toContain('; backend wasm.');
  });

  describe('in a project with few backends', () => {
    /** Training with the package as it is installed beside these packages only. */
    function trainBeside(packages: string[], folder: string, ...more: string[]) {
      const project = workspace.path(folder);
      cpSync(join(root, 'dist'), join(project, 'dist'), {recursive: true});
      for (const name of ['@tensorflow/tfjs-core', '@tensorflow/tfjs-layers', ...packages]) {
        const place = join(project, 'node_modules', name);
        mkdirSync(dirname(place), {recursive: true});
        symlinkSync(join(root, 'node_modules', name), place);
      }
      const [, ...args] =
        more.length > 0
          ? workspace.trainArgs(`${folder}-out`, '--steps', '2', ...more)
          : withoutBackend(`${folder}-out`, '--d-model', '128');
      return {project, train: () => run([join(project, 'dist', 'cli.cjs'), ...args])};
    }
    const WASM = '@tensorflow/tfjs-backend-wasm';

    it('without tfjs-node training takes wasm, and says once what is missing', async () => {
      const {code, stderr} = await trainBeside([WASM], 'plain').train();
      expect(code).toBe(0);
      expect(stderr).toContain(
        'backend wasm (not node: it is not installed; npm install @tensorflow/tfjs-node; --backend chooses another).',
      );
      expect(stderr.match(/tfjs-node/g)).toHaveLength(1);
    });

    it('node that is not installed is an error that says how to get it', async () => {
      const {code, stderr} = await trainBeside([WASM], 'asked', '--backend', 'node').train();
      expect(code).toBe(1);
      expect(stderr).toContain('--backend node: it is not installed; npm install @tensorflow/tfjs-node');
    });

    it('without any backend there is an error that names all of them', async () => {
      const {code, stderr} = await trainBeside([], 'none').train();
      expect(code).toBe(1);
      for (const name of ['tfjs-node', 'tfjs-backend-wasm', 'tfjs-backend-cpu']) {
        expect(stderr).toContain(`it is not installed; npm install @tensorflow/${name}`);
      }
    });

    it('tfjs-node whose library was not downloaded is passed over, with what to do', async () => {
      const {project, train} = trainBeside([WASM], 'half');
      const fake = join(project, 'node_modules', '@tensorflow', 'tfjs-node');
      mkdirSync(fake);
      writeFileSync(
        join(fake, 'index.js'),
        "throw new Error('The Node.js native addon module (tfjs_binding.node) can not be found at path: here');",
      );
      const {code, stderr} = await train();
      expect(code).toBe(0);
      expect(stderr).toContain(
        'backend wasm (not node: its native library is missing; npx tfjs-linear-attention setup-node;',
      );
    });

    it('on Node 24 training takes wasm, and says why', async () => {
      const preload = workspace.write(
        'node24.cjs',
        "Object.defineProperty(process, 'versions', {value: {...process.versions, node: '24.1.0'}});",
      );
      const {code, stderr} = await run(['-r', preload, ...withoutBackend('node24', '--d-model', '128')]);
      expect(code).toBe(0);
      expect(stderr).toMatch(/backend wasm \(not node: tfjs-node 4\.22 does not run on Node 23 and later/);
    });
  });
});
