/** What `train` says at its end. */
import {reportEnd} from '../../cli/report_end';

const finished = {
  step: 20,
  stopped: 'finished' as const,
  loss: 1.5,
  validation: null,
  tokensPerSecond: 1234.4,
  seconds: 1,
  history: [],
};

describe('the end of a training', () => {
  let logged: jest.SpyInstance;
  beforeEach(() => {
    logged = jest.spyOn(console, 'log').mockImplementation(() => undefined);
  });
  afterEach(() => logged.mockRestore());
  const linesOf = (result: object, text: string) => {
    reportEnd({...finished, ...result}, 'runs/book', {interrupted: false, text});
    return logged.mock.calls.map(([line]) => line as string);
  };

  it.each([
    ['a word of the text', '\n«Ёж и 3 лисы»', '"Ёж"'],
    ['a number where it has no words', '$ 42; 43', '"42"'],
    ['a placeholder where it has neither', '!?', 'TEXT'],
  ])('suggests a prompt that the model can read: %s', (_, text, prompt) => {
    expect(linesOf({}, text)[1]).toBe(
      `Write with it: tfjs-linear-attention generate --model runs/book --prompt ${prompt}`,
    );
  });

  it('names the speed, unless the run was finished before it was resumed', () => {
    expect(linesOf({}, 'a')[0]).toBe('20 steps, loss 1.5000, 1234 tokens/s; saved in runs/book');
    logged.mockClear();
    expect(linesOf({loss: Number.NaN, tokensPerSecond: 0}, 'a')[0]).toBe('20 steps; saved in runs/book');
  });
});
