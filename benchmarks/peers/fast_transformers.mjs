/** Talks to fast_transformers_driver.py: one Python process that waits for a line, works, and answers with one. */
import {spawn} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {fileURLToPath} from 'node:url';

const SCRIPT = fileURLToPath(new URL('fast_transformers_driver.py', import.meta.url));

/** @returns null where there is no Python that can import both packages. */
export async function fastTransformers(threads = 1) {
  const python = process.env.BENCH_PYTHON ?? 'python3';
  const child = spawn(python, [SCRIPT], {
    stdio: ['pipe', 'pipe', 'ignore'],
    // Passive: idle threads that spin would take the others' turns.
    env: {
      ...process.env,
      OMP_NUM_THREADS: `${threads}`,
      MKL_NUM_THREADS: `${threads}`,
      OMP_WAIT_POLICY: 'PASSIVE',
    },
  });
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  const lines = createInterface({input: child.stdout})[Symbol.asyncIterator]();
  const hello = await lines.next();
  if (hello.done) return null;
  const ask = async (line) => {
    child.stdin.write(`${line}\n`);
    const {value, done} = await lines.next();
    if (done) throw new Error(`fast_transformers_driver.py ended at: ${line}`);
    return value;
  };
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const file = join(folder, 'values');
  return {
    name: `pytorch-fast-transformers as pip builds it, torch ${hello.value.split(' ')[1]}`,
    /** Inputs as arrays [N,H,r]: q, k, v and, for gradients, dy. With a chunk length, PyTorch's own operations of [H,N,r]. */
    async make(N, r, inputs, chunk = 0) {
      writeFileSync(
        file,
        Buffer.concat(inputs.map((x) => Buffer.from(x.buffer, x.byteOffset, x.byteLength))),
      );
      await ask(`make ${N} ${r} ${inputs.length === 4 ? 1 : 0} ${chunk} ${file}`);
    },
    time: async () => Number(await ask('run')),
    async result() {
      await ask('run');
      await ask(`save ${file}`);
      const bytes = readFileSync(file);
      return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4).slice();
    },
    end() {
      child.stdin.end();
      rmSync(folder, {recursive: true, force: true});
    },
  };
}
