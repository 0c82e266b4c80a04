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
  /** The same for stdout. */
  wrote(pattern: RegExp): Promise<void>;
}

/** Starts a program with its output collected; stdin is empty. */
export function start(program: string, args: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(program, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {...process.env, ...env},
  });
  const text = {stdout: '', stderr: ''};
  const waiting: {check: () => void; giveUp: () => void}[] = [];
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (data) => {
      text[name] += data;
      for (const {check} of waiting) check();
    });
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      for (const {giveUp} of waiting) giveUp();
      resolve({code, signal, ...text});
    });
  });
  const until = (name: 'stdout' | 'stderr') => (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const check = () => {
        if (pattern.test(text[name])) resolve();
      };
      const giveUp = () => reject(new Error(`ended without ${pattern}; ${name}: ${text[name]}`));
      waiting.push({check, giveUp});
      check();
    });
  return {ended, kill: (signal) => void child.kill(signal), said: until('stderr'), wrote: until('stdout')};
}

/** Runs a program of Node's to its end. */
export const run = (args: readonly string[], env?: Record<string, string>): Promise<Ended> =>
  start(process.execPath, args, env).ended;
