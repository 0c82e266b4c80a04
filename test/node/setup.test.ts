/** The set-up script of tfjs-node, as far as it can be tried without downloading: what it says, and that it repeats nothing. */
import {cpSync, mkdtempSync, readdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import {NATIVE_TAG} from '../../src/node/native_tag';
import {root, run} from '../helpers/dist';
import {describeOnTfjsNode} from '../helpers/tfjs_node';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

const SCRIPT = join(root, 'scripts', 'setup_node.mjs');

/** What an expression gives in a program that has imported a script's module. */
async function evaluated(module: string, expression: string): Promise<unknown> {
  const code = `import * as it from './scripts/node/${module}.mjs'; console.log(JSON.stringify(${expression}));`;
  const {stdout} = await run(['--input-type=module', '-e', code]);
  return JSON.parse(stdout);
}

describe('the set-up of tfjs-node', () => {
  it.each([
    [
      'Node 24',
      {platform: 'linux', arch: 'x64', version: 'v24.1.0'},
      /does not run on Node 23 and later.*wasm/,
    ],
    [
      'a Mac',
      {platform: 'darwin', arch: 'arm64', version: 'v22.1.0'},
      /only Linux on x64.*darwin on arm64.*wasm/,
    ],
    ['Linux on ARM', {platform: 'linux', arch: 'arm64', version: 'v20.1.0'}, /only Linux on x64/],
  ])('says what is possible on %s', async (_, machine, text) => {
    expect(await evaluated('platform', `it.whyNotHere(${JSON.stringify(machine)})`)).toMatch(text);
  });

  it('goes on where it can', async () => {
    const machine = {platform: 'linux', arch: 'x64', version: 'v22.1.0'};
    expect(await evaluated('platform', `it.whyNotHere(${JSON.stringify(machine)})`)).toBeNull();
  });

  it('builds what the library looks for: after a change of the sources, node scripts/node/write_tag.mjs', async () => {
    expect(await evaluated('native_operation', 'it.nativeTag()')).toBe(NATIVE_TAG);
  });
});

describeOnTfjsNode('the set-up of tfjs-node that was done', () => {
  const caches = mkdtempSync(join(tmpdir(), 'tfla-cache-'));
  afterAll(() => rmSync(caches, {recursive: true, force: true}));

  it('is silent, and does nothing twice', async () => {
    for (let i = 0; i < 2; i++) {
      expect(await run([SCRIPT])).toEqual({code: 0, signal: null, stdout: '', stderr: ''});
    }
  });

  it('without a compiler: says what is missing and what still works, and leaves nothing half done', async () => {
    const env = {XDG_CACHE_HOME: caches, PATH: ''};
    const {code, stdout, stderr} = await run([SCRIPT], env);
    expect({code, stdout}).toEqual({code: 1, stdout: ''});
    expect(stderr).toMatch(/tfjs-node works, but the native operation could not be built/);
    expect(stderr).toMatch(/g\+\+ is missing/);
    expect(readdirSync(join(caches, 'tfjs-linear-attention'))).toEqual([]);
    expect((await run([SCRIPT, '--optional'], env)).code).toBe(0);
  });

  it('without python3, where libtensorflow cannot be downloaded: says what is missing', async () => {
    const project = mkdtempSync(join(tmpdir(), 'tfla-project-'));
    const tfjsNode = join('node_modules', '@tensorflow', 'tfjs-node');
    for (const part of ['package.json', 'scripts']) {
      cpSync(join(root, tfjsNode, part), join(project, tfjsNode, part), {recursive: true});
    }
    const code = `process.chdir(${JSON.stringify(project)}); import(${JSON.stringify(pathToFileURL(SCRIPT).href)});`;
    const env = {XDG_CACHE_HOME: project, PATH: '', TFJS_NODE_BASE_URI: 'http://127.0.0.1:9/'};
    const {code: exit, stderr} = await run(['-e', code], env);
    rmSync(project, {recursive: true, force: true});
    expect(exit).toBe(1);
    expect(stderr).toMatch(/^setup:node: python3 is missing\..*g\+\+, and python3 with pip/);
    expect(stderr).toContain("without it the backend 'tensorflow' is missing; wasm and cpu work as they do.");
  });
});
