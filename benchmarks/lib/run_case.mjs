/** Runs the processes of one case, and puts their answers together. */
import {fork} from 'node:child_process';
import {fileURLToPath} from 'node:url';

const MEASURE = fileURLToPath(new URL('../measure.mjs', import.meta.url));

/** One process; resolves with what it sent. */
function inProcess({name, nodeArguments}, {execPath, major, quick, choices}) {
  return new Promise((resolve, reject) => {
    const child = fork(MEASURE, [], {
      execPath,
      execArgv: nodeArguments(major),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    let answer = null;
    child.on('message', (message) => {
      answer = message;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (answer === null) reject(new Error(`the process ended with ${signal ?? code} before it answered`));
      else if (answer.error !== undefined) reject(new Error(answer.error));
      else resolve(answer);
    });
    child.send({name, quick, choices});
  });
}

/**
 * @returns {title, about, unit, kernels, backend, peers, load, rows}; a row has `figures`, or `results`:
 *   {name: {processes: [[ms]], error, tuned, flops, tokens}}
 */
export async function runCase(one, {execPath, major, quick, onProcess}) {
  const answers = [];
  let choices = {};
  for (let i = 0; i < (quick ? 1 : one.processes); i++) {
    onProcess?.(i + 1);
    const answer = await inProcess(one, {execPath, major, quick, choices});
    if (answer.skipped) return answer;
    choices = answer.choices;
    answers.push(answer);
  }
  const {choices: _, load: _load, rows, ...rest} = answers[0];
  return {
    ...rest,
    measured: new Date().toISOString().slice(0, 10),
    load: answers.flatMap(({load}) => load),
    rows: rows.map((row, i) =>
      row.results === undefined ? row : together(answers.map((answer) => answer.rows[i])),
    ),
  };
}

function together(rows) {
  const names = Object.keys(rows[0].results);
  const results = names.map((name) => {
    const {timings: _, ...rest} = rows[0].results[name];
    return [name, {...rest, processes: rows.map((row) => row.results[name].timings)}];
  });
  return {...rows[0], results: Object.fromEntries(results)};
}
