import {type Flags, flagsHelp, parseFlags} from '../../cli/args';
import {UsageError} from '../../cli/errors';

const flags = {
  data: {type: 'string', describe: 'the text', required: true, value: 'FILE'},
  attention: {type: 'string', describe: 'the kind', choices: ['linear', 'softmax'], default: 'linear'},
  steps: {type: 'integer', describe: 'how many', min: 1, default: 10},
  'learning-rate': {type: 'number', describe: 'the rate', min: 0, exclusiveMin: true},
  'top-p': {type: 'number', describe: 'the sum', min: 0, exclusiveMin: true, max: 1},
  resume: {type: 'boolean', describe: 'continue'},
} as const satisfies Flags;

const parse = (...argv: string[]) => parseFlags('train', flags, argv);

describe('command line flags', () => {
  it('have their defaults, and are told apart from those that were given', () => {
    const {values, given} = parse('--data', 'a.txt', '--steps=3');
    expect(values).toEqual({
      data: 'a.txt',
      attention: 'linear',
      steps: 3,
      'learning-rate': undefined,
      'top-p': undefined,
      resume: false,
    });
    expect([...given]).toEqual(['data', 'steps']);
  });

  it('take values that begin with a dash where they are meant', () => {
    expect(parse('--data=--odd').values.data).toBe('--odd');
    expect(parse('--data', '-odd').values.data).toBe('-odd');
    expect(parse('--data', 'x', '--learning-rate', '1e-3').values['learning-rate']).toBe(1e-3);
  });

  it.each([
    [
      'an unknown flag, with a hint',
      ['--data', 'x', '--stpes', '3'],
      'train: unknown flag --stpes; did you mean --steps?',
    ],
    ['an unknown flag like nothing else', ['--data', 'x', '--banana'], 'train: unknown flag --banana'],
    ['a prototype key as a flag', ['--data', 'x', '--constructor', '3'], 'train: unknown flag --constructor'],
    ['a flag given twice', ['--data', 'x', '--data', 'y'], 'train: --data is given twice.'],
    ['a missing required flag', [], 'train: --data is missing (the text).'],
    ['an empty required flag', ['--data', ''], 'train: --data is empty.'],
    ['a flag without its value at the end', ['--data'], 'train: --data needs a value (the text).'],
    [
      'a flag whose value is the next flag',
      ['--data', '--resume'],
      'train: --data needs a value (the text).',
    ],
    ['a switch with a value', ['--data', 'x', '--resume=yes'], "train: --resume takes no value; got 'yes'."],
    [
      'a value that is not among the choices',
      ['--data', 'x', '--attention', 'sparse'],
      "train: expected --attention to be linear or softmax; got 'sparse'.",
    ],
    [
      'a fraction of a whole number',
      ['--data', 'x', '--steps', '1.5'],
      "train: expected --steps to be a whole number of at least 1; got '1.5'.",
    ],
    [
      'a number below its bound',
      ['--data', 'x', '--steps', '0'],
      "train: expected --steps to be a whole number of at least 1; got '0'.",
    ],
    [
      'text for a number',
      ['--data', 'x', '--steps', 'ten'],
      "train: expected --steps to be a whole number of at least 1; got 'ten'.",
    ],
    [
      'nothing for a number',
      ['--data', 'x', '--steps', ''],
      "train: expected --steps to be a whole number of at least 1; got ''.",
    ],
    [
      'NaN',
      ['--data', 'x', '--learning-rate', 'NaN'],
      "train: expected --learning-rate to be a number above 0; got 'NaN'.",
    ],
    [
      'an infinite number',
      ['--data', 'x', '--learning-rate', 'Infinity'],
      "train: expected --learning-rate to be a number above 0; got 'Infinity'.",
    ],
    [
      'an exclusive bound itself',
      ['--data', 'x', '--top-p', '0'],
      "train: expected --top-p to be a number above 0 and at most 1; got '0'.",
    ],
    [
      'a number above its bound',
      ['--data', 'x', '--top-p', '1.1'],
      "train: expected --top-p to be a number above 0 and at most 1; got '1.1'.",
    ],
    ['a stray argument', ['--data', 'x', 'y'], "train: unexpected argument 'y'; values are given by flags."],
  ])('refuse %s', (_, argv, text) => {
    expect(() => parse(...argv)).toThrow(UsageError);
    expect(() => parse(...argv)).toThrow(text);
  });

  it('are all in the help, with choices and defaults', () => {
    const help = flagsHelp(flags);
    for (const name of Object.keys(flags)) expect(help).toContain(`--${name}`);
    expect(help).toContain('--attention linear|softmax');
    expect(help).toContain('how many (default 10)');
  });
});
