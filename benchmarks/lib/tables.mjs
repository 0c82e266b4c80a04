/** The report of a case in Markdown. */
import {ratioOf, summarise} from './statistics.mjs';

/** Timings of a contender in the protocol; those with fewer are marked. */
const ENOUGH = 15;

export function digits(x) {
  if (x === 0 || !Number.isFinite(x)) return String(x);
  const size = Math.abs(x);
  if (size < 1e-3) return x.toExponential(1);
  return size >= 100 ? x.toFixed(0) : x.toPrecision(3);
}

const table = (head, rows) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** Milliseconds to the unit of the case. */
const inUnit = (unit, {flops, tokens}) => {
  if (unit === 'GFLOP/s') return (ms) => flops / ms / 1e6;
  if (unit === 'tokens/s') return (ms) => (tokens * 1000) / ms;
  return (ms) => ms;
};

function cell(name, first, {results}, unit) {
  const result = results[name];
  if (result === undefined) return '';
  const {median, min, max} = summarise(result.processes);
  const convert = inUnit(unit, result);
  const [low, high] = [convert(min), convert(max)].sort((a, b) => a - b);
  const few = result.processes.some(({length}) => length < ENOUGH)
    ? ` *${result.processes.flat().length}*`
    : '';
  const ratio =
    name === first || results[first] === undefined
      ? ''
      : `, **${digits(ratioOf(results[first], result).median)}x**`;
  return `${digits(convert(median))} (${digits(low)} to ${digits(high)})${ratio}${few}`;
}

function tuning(rows) {
  const notes = rows.flatMap(({key, results = {}}) =>
    Object.entries(results)
      .filter(([, {tuned}]) => tuned !== undefined)
      .map(
        ([name, {tuned}]) =>
          `${key}: ${name} ${Object.entries(tuned)
            .map(([k, v]) => `${k} = ${v}`)
            .join(', ')}`,
      ),
  );
  return notes.length === 0 ? '' : `\n\nChosen for the peers: ${notes.join('; ')}.`;
}

/** Heading, text, table, and what ran. */
export function caseReport(name, {title, about, rows, unit, kernels, backend, peers, load, measured}) {
  const timed = rows[0].results !== undefined;
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row.results ?? row.figures)))];
  const first = columns[0];
  const body = rows.map((row) => [
    row.key,
    ...columns.map((column) =>
      timed
        ? cell(column, first, row, unit)
        : row.figures[column] === undefined
          ? ''
          : digits(row.figures[column]),
    ),
  ]);
  const measure = timed
    ? `${unit ?? 'ms'}: median of the processes' medians (least to greatest timing), **how many times faster the first column is**`
    : (unit ?? '');
  const ran = [`backend ${backend}`, `kernels of ours: ${kernels.join(', ')}`, ...(peers ?? [])].join('; ');
  return [
    `## ${title}`,
    `\`npm run bench -- --only ${name}\` (${measured})`,
    `${about}${measure === '' ? '' : ` ${measure}.`}`,
    table(['', ...columns], body) + tuning(rows),
    `Ran: ${ran}; load average ${Math.min(...load)} to ${Math.max(...load)}.`,
  ].join('\n\n');
}

export function goalReport(goals) {
  const rows = goals.map(({text, goal, value, met}) => [
    text,
    goal,
    value,
    met === null ? '' : met ? 'met' : '**not met**',
  ]);
  return `## Goals\n\n${table(['what', 'goal', 'measured (least to greatest process)', ''], rows)}`;
}
