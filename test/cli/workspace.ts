/** A folder with a text and tiny trainings in it, for tests of the built command line. */
import {existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {cli, type Ended, type Running, run, start} from '../helpers/dist';

export const TEXT = 'the quick brown fox jumps over the lazy dog, and the dog sleeps on.\n'.repeat(12);

const TINY = ['--d-model', '8', '--layers', '1', '--heads', '2', '--length', '16', '--batch', '2'];
const CPU = ['--backend', 'cpu'];

export class Workspace {
  readonly folder = mkdtempSync(join(tmpdir(), 'tfla-cli-'));
  readonly text = this.write('text.txt', TEXT);

  path(...names: string[]): string {
    return join(this.folder, ...names);
  }
  write(name: string, content: string | Uint8Array): string {
    writeFileSync(this.path(name), content);
    return this.path(name);
  }
  bytes(...names: string[]): Buffer {
    return readFileSync(this.path(...names));
  }
  exists(...names: string[]): boolean {
    return existsSync(this.path(...names));
  }
  list(...names: string[]): string[] {
    return readdirSync(this.path(...names)).sort();
  }
  lines(...names: string[]): {step: number; loss: number}[] {
    return this.bytes(...names)
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  }
  remove(): void {
    rmSync(this.folder, {recursive: true, force: true});
  }

  /** The arguments of a tiny training into a folder of the workspace. */
  trainArgs(out: string, ...more: string[]): string[] {
    return [
      cli,
      'train',
      '--data',
      this.text,
      '--out',
      this.path(out),
      ...TINY.filter((x, i) => !more.includes(i % 2 === 0 ? x : TINY[i - 1])),
      ...(more.includes('--backend') ? [] : CPU),
      ...more,
    ];
  }
  train(out: string, ...more: string[]): Promise<Ended> {
    return run(this.trainArgs(out, ...more));
  }
  /** No backend: a run continues on its own. */
  resumeArgs(out: string, ...more: string[]): string[] {
    const paths = ['--data', this.text, '--out', this.path(out)];
    return [cli, 'train', ...paths, '--resume', ...more];
  }
  resume(out: string, ...more: string[]): Promise<Ended> {
    return run(this.resumeArgs(out, ...more));
  }
  startTraining(out: string, ...more: string[]): Running {
    return start(process.execPath, this.trainArgs(out, ...more));
  }
  generateArgs(model: string, ...more: string[]): string[] {
    return [cli, 'generate', '--model', this.path(model), ...CPU, ...more];
  }
  generate(model: string, ...more: string[]): Promise<Ended> {
    return run(this.generateArgs(model, ...more));
  }
}

/** A shell in which no file may become larger than this, as on a full disk: writes fail instead of killing the program. */
export function withFileLimit(kibibytes: number, args: readonly string[]): Promise<Ended> {
  const script = `trap '' XFSZ; ulimit -f ${kibibytes}; exec "$@"`;
  return start('bash', ['-c', script, 'bash', process.execPath, ...args]).ended;
}
