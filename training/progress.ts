import {check, show} from '../src/errors';
import type {Evaluation} from './evaluate';

/** What `onProgress` of `training.train` is told after each step. */
export interface TrainingProgress {
  /** Steps done, counted from the start of the run (1 after the first). */
  step: number;
  /** Steps in the whole run. */
  steps: number;
  /** Training loss of this step, nats per token. */
  loss: number;
  /** loss / ln 2. */
  bitsPerCharacter: number;
  learningRate: number;
  /** Global norm of the gradient, before clipping. */
  gradientNorm: number;
  tokensPerSecond: number;
  /** Estimated time to the last step. */
  secondsLeft: number;
  /** The newest measure on the validation tokens; null before the first, or when there are none. */
  validation: Evaluation | null;
  /** What was done in this step besides training. */
  events: TrainingEvent[];
}

/** What happened at a step besides the update. */
export type TrainingEvent =
  | {kind: 'validation'; evaluation: Evaluation}
  | {kind: 'checkpoint'; where: string}
  | {kind: 'checkpoint-failed'; where: string; error: Error};

/** Where progress is written: `process.stdout` and `process.stderr` are such streams. */
export interface ProgressStream {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

/** What `progressPrinter` returns. */
export interface ProgressPrinter {
  /** Give this to `onProgress`. */
  update(progress: TrainingProgress): void;
  /** Ends a rewritten line. Call it when training is over, also after an error. */
  end(): void;
}

/** `5s`, `1m 05s`, `2h 03m`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) {
    return '?';
  }
  const s = Math.max(0, Math.round(seconds));
  const two = (n: number) => String(n).padStart(2, '0');
  if (s < 60) {
    return `${s}s`;
  }
  return s < 3600
    ? `${Math.floor(s / 60)}m ${two(s % 60)}s`
    : `${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
}

/**
 * One line: `step 20/100  loss 2.4951  3.600 bits/char  12345 tokens/s  1m 05s left`.
 *
 * ```js
 * await training.train(model, tokens, {steps: 100, onProgress: (p) => console.log(training.progressLine(p))});
 * ```
 */
export function progressLine(p: TrainingProgress): string {
  const parts = [
    `step ${String(p.step).padStart(String(p.steps).length)}/${p.steps}`,
    `loss ${p.loss.toFixed(4)}`,
    `${p.bitsPerCharacter.toFixed(3)} bits/char`,
    ...(p.validation === null ? [] : [`validation ${p.validation.bitsPerCharacter.toFixed(3)} bits/char`]),
    `${Math.round(p.tokensPerSecond)} tokens/s`,
    `${duration(p.secondsLeft)} left`,
  ];
  return parts.join('  ');
}

/** Plain lines are at least this far apart, unless something happened. */
const LOG_INTERVAL_MS = 5000;

/**
 * Prints progress: one line that is rewritten in a terminal, plain lines in a log (the first and the last step, every
 * validation, and one in five seconds).
 *
 * ```js
 * const printer = training.progressPrinter(process.stdout);
 * await training.train(model, tokens, {steps: 100, onProgress: printer.update});
 * printer.end();
 * ```
 */
export function progressPrinter(
  stream: ProgressStream,
  now: () => number = () => performance.now(),
): ProgressPrinter {
  check(
    typeof stream?.write === 'function',
    'training.progressPrinter',
    () => `expected stream to have a function write; got ${show(stream)}.`,
  );
  let open = false;
  let lastLine = Number.NEGATIVE_INFINITY;
  const close = () => {
    if (open) {
      stream.write('\n');
      open = false;
    }
  };
  return {
    update(progress) {
      const line = progressLine(progress);
      const failures = progress.events.filter((event) => event.kind === 'checkpoint-failed');
      if (stream.isTTY) {
        // A line that wraps could not be rewritten.
        const width = Math.max(20, (stream.columns ?? 80) - 1);
        stream.write(`\r\x1b[K${line.slice(0, width)}`);
        open = true;
      } else if (
        progress.events.length > 0 ||
        progress.step === progress.steps ||
        now() - lastLine >= LOG_INTERVAL_MS
      ) {
        stream.write(`${line}\n`);
        lastLine = now();
      }
      for (const {where, error} of failures) {
        close();
        stream.write(`checkpoint ${where} could not be written, training goes on: ${error.message}\n`);
      }
    },
    end: close,
  };
}
