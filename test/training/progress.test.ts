/** The progress line: its text, one rewritten line in a terminal, plain lines in a log. */
import {training} from '../../index';
import {duration} from '../../training/progress';

const at = (step: number, more: Partial<training.TrainingProgress> = {}): training.TrainingProgress => ({
  step,
  steps: 100,
  loss: Math.LN2 * 2.5,
  bitsPerCharacter: 2.5,
  learningRate: 1e-3,
  gradientNorm: 1,
  tokensPerSecond: 12345.6,
  secondsLeft: 65,
  validation: null,
  events: [],
  ...more,
});
const evaluation = {loss: 2, perplexity: 7.4, bitsPerCharacter: 2.885, tokens: 100};

/** What a stream was told, with a clock that moves a second per step. */
function printed(stream: {isTTY?: boolean; columns?: number}, steps: training.TrainingProgress[]): string {
  let text = '';
  let time = 0;
  const printer = training.progressPrinter({...stream, write: (part) => (text += part)}, () => time);
  for (const step of steps) {
    printer.update(step);
    time += 1000;
  }
  printer.end();
  printer.end();
  return text;
}

describe('progress', () => {
  test('the line shows step, loss, bits per character, tokens per second and the time left', () => {
    expect(training.progressLine(at(7))).toBe(
      'step   7/100  loss 1.7329  2.500 bits/char  12346 tokens/s  1m 05s left',
    );
    expect(training.progressLine(at(100, {validation: evaluation, secondsLeft: 0}))).toBe(
      'step 100/100  loss 1.7329  2.500 bits/char  validation 2.885 bits/char  12346 tokens/s  0s left',
    );
  });

  test('durations', () => {
    expect([0, 0.4, 59.4, 59.6, 600, 3599, 3600, 7384].map(duration)).toEqual([
      '0s',
      '0s',
      '59s',
      '1m 00s',
      '10m 00s',
      '59m 59s',
      '1h 00m',
      '2h 03m',
    ]);
    expect(duration(Number.NaN)).toBe('?');
  });

  test('in a terminal one line is rewritten, and ended once', () => {
    const text = printed({isTTY: true, columns: 200}, [at(1), at(2)]);
    expect(text).toBe(`\r\x1b[K${training.progressLine(at(1))}\r\x1b[K${training.progressLine(at(2))}\n`);
  });

  test('a narrow terminal gets a line that does not wrap', () => {
    const text = printed({isTTY: true, columns: 30}, [at(1)]);
    expect(text).toBe(`\r\x1b[K${training.progressLine(at(1)).slice(0, 29)}\n`);
  });

  test('in a log there are plain lines: the first, one in five seconds, validations, the last', () => {
    const steps = Array.from({length: 100}, (_, i) =>
      at(i + 1, i === 12 ? {validation: evaluation, events: [{kind: 'validation', evaluation}]} : {}),
    );
    const lines = printed({}, steps).split('\n');
    expect(lines.pop()).toBe('');
    expect(lines.slice(0, 5).map((line) => Number(/step\s+(\d+)/.exec(line)![1]))).toEqual([
      1, 6, 11, 13, 18,
    ]);
    expect(lines.at(-1)).toBe(training.progressLine(at(100)));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: there must be none
    expect(lines.join('')).not.toMatch(/[\r\x1b]/);
  });

  test('a checkpoint that could not be written is said on a line of its own', () => {
    const events: training.TrainingEvent[] = [
      {kind: 'checkpoint-failed', where: "'a.bin'", error: new Error('disk full')},
    ];
    const line = training.progressLine(at(1));
    const told = "checkpoint 'a.bin' could not be written, training goes on: disk full\n";
    expect(printed({isTTY: true, columns: 200}, [at(1, {events})])).toBe(`\r\x1b[K${line}\n${told}`);
    expect(printed({}, [at(1, {events})])).toBe(`${line}\n${told}`);
  });

  test('a stream that cannot be written to is refused', () => {
    expect(() => training.progressPrinter({} as never)).toThrow(/expected stream to have a function write/);
  });
});
