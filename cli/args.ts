/** Flags as tables: one table per command parses, checks, and writes the help. */
import {parseArgs} from 'node:util';
import {UsageError} from './errors';

interface FlagBase {
  describe: string;
  /** A one-letter alias. */
  short?: string;
}
interface NumberFlag extends FlagBase {
  type: 'number' | 'integer';
  default?: number;
  min?: number;
  /** The bound itself is allowed, unless exclusiveMin. */
  exclusiveMin?: boolean;
  max?: number;
}
interface StringFlag extends FlagBase {
  type: 'string';
  /** What the help calls the value. */
  value?: string;
  default?: string;
  choices?: readonly string[];
  required?: boolean;
}
interface BooleanFlag extends FlagBase {
  type: 'boolean';
}
export type Flag = NumberFlag | StringFlag | BooleanFlag;
export type Flags = Record<string, Flag>;

type Choice<F> = F extends {choices: readonly (infer C)[]} ? C : string;
type Value<F> = F extends BooleanFlag
  ? boolean
  : F extends NumberFlag
    ? F extends {default: number}
      ? number
      : number | undefined
    : F extends {required: true} | {default: string}
      ? Choice<F>
      : Choice<F> | undefined;

export interface Parsed<F extends Flags> {
  values: {[K in keyof F]: Value<F[K]>};
  /** The flags that were given, as opposed to those that have their defaults. */
  given: Set<string>;
}

/** Parses and checks a command's arguments. Every fault is a UsageError that names the flag. */
export function parseFlags<F extends Flags>(command: string, flags: F, argv: readonly string[]): Parsed<F> {
  const options: Record<string, {type: 'string' | 'boolean'; short?: string}> = {};
  for (const [name, flag] of Object.entries(flags)) {
    options[name] = {
      type: flag.type === 'boolean' ? 'boolean' : 'string',
      ...(flag.short && {short: flag.short}),
    };
  }
  const {tokens} = parseArgs({args: [...argv], options, strict: false, allowPositionals: true, tokens: true});
  const values: Record<string, unknown> = {};
  const given = new Set<string>();
  for (const token of tokens) {
    if (token.kind === 'positional') {
      throw new UsageError(`${command}: unexpected argument '${token.value}'; values are given by flags.`);
    }
    if (token.kind !== 'option') continue;
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined;
    if (flag === undefined) {
      const hint = nearest(token.name, Object.keys(flags));
      throw new UsageError(
        `${command}: unknown flag ${token.rawName}${hint === undefined ? '' : `; did you mean --${hint}?`}`,
      );
    }
    if (given.has(token.name)) throw new UsageError(`${command}: --${token.name} is given twice.`);
    given.add(token.name);
    values[token.name] = readValue(command, token.name, flag, token.value, token.inlineValue === true);
  }
  for (const [name, flag] of Object.entries(flags)) {
    if (given.has(name)) continue;
    if (flag.type === 'string' && flag.required) {
      throw new UsageError(`${command}: --${name} is missing (${flag.describe}).`);
    }
    values[name] = flag.type === 'boolean' ? false : flag.default;
  }
  return {values: values as Parsed<F>['values'], given};
}

function readValue(command: string, name: string, flag: Flag, value: string | undefined, inline: boolean) {
  if (flag.type === 'boolean') {
    if (value !== undefined) throw new UsageError(`${command}: --${name} takes no value; got '${value}'.`);
    return true;
  }
  if (value === undefined || (!inline && value.startsWith('--'))) {
    throw new UsageError(`${command}: --${name} needs a value (${flag.describe}).`);
  }
  if (flag.type === 'string') {
    if (flag.choices !== undefined && !flag.choices.includes(value)) {
      throw new UsageError(
        `${command}: expected --${name} to be ${flag.choices.join(' or ')}; got '${value}'.`,
      );
    }
    if (value === '' && flag.required) throw new UsageError(`${command}: --${name} is empty.`);
    return value;
  }
  const number = value.trim() === '' ? Number.NaN : Number(value);
  const {min = -Infinity, max = Infinity, exclusiveMin = false} = flag;
  const low = exclusiveMin ? number > min : number >= min;
  if (
    !Number.isFinite(number) ||
    (flag.type === 'integer' && !Number.isSafeInteger(number)) ||
    !low ||
    number > max
  ) {
    throw new UsageError(`${command}: expected --${name} to be ${describeRange(flag)}; got '${value}'.`);
  }
  return number;
}

function describeRange(flag: NumberFlag): string {
  const noun = flag.type === 'integer' ? 'a whole number' : 'a number';
  const low =
    flag.min === undefined ? '' : flag.exclusiveMin ? ` above ${flag.min}` : ` of at least ${flag.min}`;
  const high = flag.max === undefined ? '' : `${low === '' ? '' : ' and'} at most ${flag.max}`;
  return noun + low + high;
}

/** The table as the help's lines. */
export function flagsHelp(flags: Flags): string {
  const rows = Object.entries(flags).map(([name, flag]) => {
    const value =
      flag.type === 'boolean'
        ? ''
        : flag.type === 'string'
          ? ` ${flag.choices?.join('|') ?? flag.value ?? 'TEXT'}`
          : ' N';
    const standard =
      flag.type !== 'boolean' && flag.default !== undefined ? ` (default ${flag.default})` : '';
    return [`  --${name}${value}`, flag.describe + standard];
  });
  const width = Math.min(30, Math.max(...rows.map(([left]) => left.length)));
  return rows
    .map(([left, right]) =>
      left.length > width ? `${left}\n${' '.repeat(width + 2)}${right}` : `${left.padEnd(width)}  ${right}`,
    )
    .join('\n');
}

/** The known name within two edits, for a typing error. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const scored = known.map((candidate) => ({candidate, distance: editDistance(name, candidate)}));
  const best = scored.sort((a, b) => a.distance - b.distance)[0];
  return best !== undefined && best.distance <= 2 ? best.candidate : undefined;
}

/** Levenshtein's distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({length: b.length + 1}, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length]!;
}
