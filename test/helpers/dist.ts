/** For tests of what users run: dist, built when it is older than the sources, and programs run from the repository's root. */
import {execFileSync, spawn} from 'node:child_process';
import {join} from 'node:path';

export const root = join(__dirname, '..', '..');
export const cli = join(root, 'dist', 'cli.cjs');

export function buildIfStale(): void {
  execFileSync(process.execPath, ['scripts/build.mjs', '--if-stale'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when what the program has written to stderr matches. */
  said(pattern: RegExp): Promise<void>;
}

/** Starts a program with its output collected; stdin is empty. */
export function start(program: string, args: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(program, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {...process.env, ...env},
  });
  let stdout = '';
  let stderr = '';
  const waiting: {pattern: RegExp; resolve: () => void; reject: (error: Error) => void}[] = [];
  child.stdout.on('data', (data) => {
    stdout += data;
  });
  child.stderr.on('data', (data) => {
    stderr += data;
    for (const {pattern, resolve} of waiting) if (pattern.test(stderr)) resolve();
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      for (const {pattern, reject: give} of waiting)
        give(new Error(`ended without saying ${pattern}; said: ${stderr}`));
      resolve({code, signal, stdout, stderr});
    });
  });
  return {
    ended,
    kill: (signal) => void child.kill(signal),
    said: (pattern) =>
      pattern.test(stderr)
        ? Promise.resolve()
        : new Promise((resolve, reject) => waiting.push({pattern, resolve, reject})),
  };
}

/** Runs a program of Node's to its end. */
export const run = (args: readonly string[], env?: Record<string, string>): Promise<Ended> =>
  start(process.execPath, args, env).ended;
