/** Ctrl-C: the first one asks the work to stop in order, the second one ends the program at once. */
import {EXIT} from './errors';

export interface Interrupt {
  signal: AbortSignal;
  /** True when it was a person, not a time limit, who stopped the work. */
  readonly interrupted: boolean;
  /** Stops the work without an interruption. */
  stop(): void;
  /** Restores Ctrl-C's usual effect. */
  release(): void;
}

/** @param notice what the first Ctrl-C says. */
export function onInterrupt(notice: string): Interrupt {
  const controller = new AbortController();
  let interrupted = false;
  const handler = () => {
    if (interrupted) process.exit(EXIT.interrupted);
    interrupted = true;
    process.stderr.write(`\n${notice}\n`);
    controller.abort();
  };
  process.on('SIGINT', handler);
  process.on('SIGTERM', handler);
  return {
    signal: controller.signal,
    get interrupted() {
      return interrupted;
    },
    stop: () => controller.abort(),
    release() {
      process.off('SIGINT', handler);
      process.off('SIGTERM', handler);
    },
  };
}
