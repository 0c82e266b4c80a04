/** Running other programs, and the errors that end a set-up. */
import {spawnSync} from 'node:child_process';

/** What a user is told: no stack. `partial`: tfjs-node itself works. */
export class SetupError extends Error {
  constructor(message, {partial = false} = {}) {
    super(message);
    this.partial = partial;
  }
}

/** Most lines of a failed program's output that are shown. */
const SHOWN = 12;

/** Runs a program to its end and returns its output; what it wrote is only shown when it fails. */
export function command(program, args, options = {}) {
  const {status, signal, error, stdout, stderr} = spawnSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  });
  if (error?.code === 'ENOENT') {
    throw new SetupError(
      `${program} is missing. Setting tfjs-node up takes g++, and python3 with pip where libtensorflow's own host cannot be reached.`,
    );
  }
  if (error !== undefined || status !== 0) {
    const lines = `${stdout ?? ''}\n${stderr ?? ''}`.trim().split('\n').slice(-SHOWN).join('\n');
    const ended = error?.message ?? (signal === null ? `code ${status}` : signal);
    throw new SetupError(`${program} ${args[0]} failed (${ended}):\n${lines}`);
  }
  return stdout;
}
