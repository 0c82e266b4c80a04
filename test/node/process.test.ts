/** tfjs-node in processes of their own: worker threads, threads of the native operations, the end of a program. */
import {join} from 'node:path';
import {buildIfStale, root, run} from '../helpers/dist';
import {describeOnTfjsNode} from '../helpers/tfjs_node';

// Programs are started; on a busy machine that takes a while.
jest.setTimeout(300000);

const QUIET = {TF_CPP_MIN_LOG_LEVEL: '2'};

/** A program in the repository's root, with tf, the package as tfla, and q, k, v of 4 heads and 300 tokens. */
const program = (body: string, env: Record<string, string> = {}) =>
  run(
    [
      '-e',
      `const tf = require('@tensorflow/tfjs-node');
       const tfla = require('./dist/index.cjs');
       const [q, k, v] = [1, 2, 3].map((seed) => tf.randomNormal([1, 4, 300, 20], 0, 1, 'float32', seed));
       ${body}`,
    ],
    {...QUIET, ...env},
  );

const SUMS = `const {value, grads} = tf.valueAndGrads((...x) => tf.sum(tfla.linearAttention(...x, {causal: true})))([q, k, v]);
  console.log([value, ...grads].map((x) => [...x.dataSync()].join()).join(' '));`;

describeOnTfjsNode('a program on tfjs-node', () => {
  beforeAll(() => buildIfStale());

  it.each(['together', 'workers-first'])('attends in worker threads: %s', async (order) => {
    const result = await run([join(root, 'test', 'node', 'worker_threads.cjs'), order], QUIET);
    expect(result).toEqual({code: 0, signal: null, stdout: '60 runs, 1 result\n', stderr: ''});
  });

  it('ends by itself, and says nothing', async () => {
    expect(await program(SUMS.replace('console.log', 'void '))).toEqual({
      code: 0,
      signal: null,
      stdout: '',
      stderr: '',
    });
  });

  it('ends in the middle with process.exit', async () => {
    const {code, stderr} = await program(`${SUMS} process.exit(7);`);
    expect({code, stderr}).toEqual({code: 7, stderr: ''});
  });

  it('gives the same bits on one thread, on two and on seven', async () => {
    const results = await Promise.all(
      ['1', '2', '7'].map((threads) => program(SUMS, {TF_NUM_INTRAOP_THREADS: threads})),
    );
    expect(results.map(({code}) => code)).toEqual([0, 0, 0]);
    expect(new Set(results.map(({stdout}) => stdout)).size).toBe(1);
  });

  it.each(['avx2', 'baseline'])("gives the same numbers on processors of the kind '%s'", async (target) => {
    const read = ({stdout}: {stdout: string}) => stdout.trim().split(/[ ,]/).map(Number);
    const [best, other] = (await Promise.all([program(SUMS), program(SUMS, {TFLA_TARGET: target})])).map(
      read,
    );
    expect(other).toHaveLength(1 + 3 * 4 * 300 * 20);
    const largest = Math.max(...best.slice(1).map(Math.abs));
    const worst = Math.max(...best.slice(1).map((x, i) => Math.abs(x - other[i + 1])));
    expect(worst).toBeLessThan(1e-5 * largest);
  });

  it('says once, and why, when it has to do without the native operations', async () => {
    const {code, stderr} = await program(`{ ${SUMS} } { ${SUMS} }`, {
      TFJS_LINEAR_ATTENTION_NATIVE: 'off',
    });
    expect(code).toBe(0);
    expect(stderr.match(/TFJS_LINEAR_ATTENTION_NATIVE=off/g)).toHaveLength(1);
  });

  it('survives a file that is no shared library in the place of the native operations', async () => {
    const {code, stderr} = await program(SUMS, {
      TFJS_LINEAR_ATTENTION_NATIVE: join(root, 'package.json'),
    });
    expect(code).toBe(0);
    expect(stderr).toContain('it could not be loaded');
  });

  it('survives another library in the place of the native operations', async () => {
    const other = require.resolve('@tensorflow/tfjs-node/lib/napi-v8/tfjs_binding.node');
    const {code, stderr} = await program(SUMS, {TFJS_LINEAR_ATTENTION_NATIVE: other});
    expect(code).toBe(0);
    expect(stderr).toContain('is another library, or of another version');
  });

  it("keeps tfjs-node's own progress bar in model.fit", async () => {
    const {code, stdout} = await program(`
      const model = tfla.models.transformer({vocabSize: 9, dModel: 8, numLayers: 1, numHeads: 2, seed: 1});
      tfla.training.compile(model, {optimizer: 'adam'});
      const x = tf.randomUniform([8, 12], 0, 9, 'int32', 5);
      model.fit(x, x, {epochs: 2, batchSize: 4, verbose: 1}).then(({history}) => {
        console.log('losses', history.loss.length, history.loss[1] < history.loss[0]);
      });`);
    expect(code).toBe(0);
    expect(stdout).toContain('Epoch 2 / 2');
    expect(stdout).toContain('losses 2 true');
  });
});
